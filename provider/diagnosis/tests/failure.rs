//! The parts of a failure that people and turns see.

use everturn_diagnosis::{Evidence, Stage, Transport, diagnose};
use everturn_wire::Category;

fn http(status: u16, body: &str) -> Evidence<'_> {
    Evidence { stage: Stage::Http, status: Some(status), headers: &[], body, transport: None, now: 0 }
}

#[test]
fn the_message_is_the_providers_own() {
    let body = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let failure = diagnose(&http(529, body));
    assert_eq!(failure.message, format!("HTTP 529: {body}"));
    assert_eq!(failure.code.as_deref(), Some("529"));
    assert_eq!(failure.provider_code.as_deref(), Some("overloaded_error"));
    assert_eq!((failure.category, failure.retryable, failure.hint_ms), (Category::Overloaded, true, None));
    assert!(failure.advice.is_some());
}

#[test]
fn inside_a_stream_the_code_is_the_frames_own() {
    let frame = |body| diagnose(&Evidence { stage: Stage::InStream, ..http(200, body) });
    let failure = frame(r#"{"error":{"code":502,"message":"Provider disconnected"}}"#);
    assert_eq!(failure.code.as_deref(), Some("502"));
    assert!(failure.message.starts_with("{\"error\""));
    assert_eq!(frame(r#"{"type":"error","error":{"type":"api_error"}}"#).code, None);
}

#[test]
fn a_long_message_is_cut_between_characters() {
    let failure = diagnose(&http(500, &"é".repeat(100_000)));
    assert!(failure.message.len() <= 4096 && failure.message.ends_with('é'));
}

#[test]
fn an_empty_success_is_a_failure() {
    for stage in [Stage::Http, Stage::InStream] {
        let failure = diagnose(&Evidence { stage, ..http(200, "") });
        assert_eq!((failure.category, failure.retryable), (Category::InvalidResponse, true));
    }
}

#[test]
fn an_unrecognized_failure_is_unknown() {
    let failure = diagnose(&Evidence { status: None, ..http(0, "flux capacitor offline") });
    assert_eq!((failure.category, failure.retryable, failure.code), (Category::Unknown, false, None));
}

#[test]
fn a_rate_limit_remains_one_whatever_its_hint() {
    let after = |seconds| {
        let headers = [("retry-after", seconds)];
        let failure = diagnose(&Evidence { headers: &headers, ..http(429, "") });
        (failure.category, failure.retryable, failure.hint_ms)
    };
    assert_eq!(after("3600"), (Category::RateLimited, true, Some(3_600_000)));
    assert_eq!(after("3601"), (Category::RateLimited, true, Some(3_601_000)));
    assert_eq!(after("172800"), (Category::RateLimited, true, Some(172_800_000)));
    let beyond = "9".repeat(400);
    assert_eq!(after(&beyond), (Category::RateLimited, true, Some(366 * 86_400_000)));
}

#[test]
fn the_category_does_not_depend_on_the_length_of_the_wait() {
    for (headers, body, category) in [
        (&[][..], r#"{"error":{"type":"usage_limit_reached","message":"x"}}"#, Category::QuotaExhausted),
        (&[], r#"{"error":{"message":"7-day limit reached"}}"#, Category::QuotaExhausted),
        (&[("x-codex-primary-used-percent", "100")], "", Category::QuotaExhausted),
        (&[("anthropic-ratelimit-unified-status", "rejected")], "", Category::QuotaExhausted),
        (&[], r#"{"error":{"message":"Usage limit of 60 requests per minute"}}"#, Category::RateLimited),
        (&[], r#"{"error":{"type":"rate_limit_error","message":"x"}}"#, Category::RateLimited),
        (&[], r#"{"error":{"type":"overloaded_error","message":"x"}}"#, Category::Overloaded),
    ] {
        for wait in [None, Some("1"), Some("1200"), Some("3601"), Some("604800")] {
            let asked = wait.map(|seconds| ("retry-after", seconds));
            let headers: Vec<_> = headers.iter().copied().chain(asked).collect();
            let failure = diagnose(&Evidence { headers: &headers, ..http(429, body) });
            assert_eq!(failure.category, category, "{body} {headers:?}");
        }
    }
}

#[test]
fn advice_for_a_firewall_is_not_to_ask_for_access_to_the_model() {
    let challenge = "<!DOCTYPE html><html><head><title>Just a moment...</title></head></html>";
    let copied = "Just a moment...\nEnable JavaScript and cookies to continue";
    let block =
        "<HTML><HEAD><TITLE>ERROR: The request could not be satisfied</TITLE></HEAD>Request blocked.</HTML>";
    for body in [challenge, copied, block, "error code: 1020"] {
        let failure = diagnose(&http(403, body));
        assert_eq!((failure.category, failure.retryable), (Category::Permission, false), "{body}");
        assert!(
            failure.advice.as_deref().unwrap().starts_with("Access is blocked for this client"),
            "{body}"
        );
    }
    let model = diagnose(&http(403, r#"{"error":{"message":"No access to model x"}}"#));
    assert!(model.advice.unwrap().starts_with("Ask the provider for access"));
}

#[test]
fn a_daily_quota_is_not_a_rate_limit() {
    for (headers, body) in [
        (&[("retry-after", "36000")][..], r#"{"error":{"message":"You have exceeded your daily limit."}}"#),
        (&[], r#"{"error":{"message":"Weekly usage limit reached. Resets in 3 days."}}"#),
        (&[], r#"{"error":{"type":"usage_limit_reached","resets_in_seconds":172800}}"#),
        (
            &[("anthropic-ratelimit-unified-status", "rejected"), ("retry-after", "14400")],
            r#"{"error":{"type":"rate_limit_error","message":"x"}}"#,
        ),
    ] {
        let failure = diagnose(&Evidence { headers, ..http(429, body) });
        assert_eq!((failure.category, failure.retryable), (Category::QuotaExhausted, false), "{body}");
        assert!(failure.hint_ms.is_some(), "{body}");
    }
}

#[test]
fn advice_for_a_byte_limit_names_what_to_reduce() {
    let nginx = "<html><head><title>413 Request Entity Too Large</title></head><hr>nginx</html>";
    for (status, body, advice) in [
        (413, "", "too large in bytes"),
        (413, nginx, "client_max_body_size"),
        (413, r#"{"error":{"message":"request body too large (max 25MB)"}}"#, "too large in bytes"),
        (
            413,
            r#"{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#,
            "bytes",
        ),
        (
            400,
            r#"{"error":{"message":"image exceeds 5 MB maximum: 7340032 bytes > 5242880 bytes"}}"#,
            "An image",
        ),
        (400, r#"{"error":{"message":"The file is too large: PDF files may have 32 MB"}}"#, "A file"),
    ] {
        let failure = diagnose(&http(status, body));
        assert_eq!((failure.category, failure.retryable), (Category::InvalidRequest, false), "{body}");
        assert!(failure.advice.as_deref().unwrap().contains(advice), "{body}: {:?}", failure.advice);
    }
    for body in [
        r#"{"error":{"message":"Request too large on tokens per minute (TPM): Limit 6000, Requested 12328"}}"#,
        r#"{"error":{"code":"tokens_limit_reached","message":"Max size: 4000 tokens."}}"#,
        r#"{"error":{"type":"request_too_large","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
        r#"{"error":{"code":"rate_limit_exceeded","type":"tokens","message":"Too much for this minute"}}"#,
    ] {
        assert_eq!(diagnose(&http(413, body)).category, Category::ContextOverflow, "{body}");
    }
}

#[test]
fn the_advice_fits_where_the_call_was() {
    let advice = |transport, status| {
        let evidence = Evidence {
            stage: Stage::Transport,
            status,
            transport: Some(transport),
            ..http(0, "connection reset by peer")
        };
        diagnose(&evidence).advice.unwrap()
    };
    assert!(advice(Transport::Connect, None).contains("base URL"));
    assert!(advice(Transport::ConnectTimeout, None).contains("base URL"));
    assert!(advice(Transport::Cut, None).contains("before an answer began"));
    for transport in [Transport::Cut, Transport::Other, Transport::IdleTimeout, Transport::NoProgress] {
        let advice = advice(transport, Some(200));
        assert!(advice.contains("try again") && !advice.contains("Check the network"), "{advice}");
    }
}

#[test]
fn the_kind_reported_by_the_transport_is_trusted() {
    let of =
        |transport| diagnose(&Evidence { transport: Some(transport), status: None, ..http(0, "") }).category;
    assert_eq!(of(Transport::IdleTimeout), Category::Timeout);
    assert_eq!(of(Transport::Cut), Category::Network);
    assert_eq!(of(Transport::Truncated), Category::InvalidResponse);
}

#[test]
fn a_wrong_local_clock_does_not_affect_a_date() {
    let headers =
        [("date", "Tue, 01 Sep 2026 00:00:00 GMT"), ("retry-after", "Tue, 01 Sep 2026 00:00:12 GMT")];
    let failure = diagnose(&Evidence { headers: &headers, ..http(429, "") });
    assert_eq!(failure.hint_ms, Some(12_000));
}

#[test]
fn a_code_that_is_cut_shows_no_part_of_a_secret() {
    for ahead in [0, 60, 70, 80, 100, 110] {
        for secret in
            ["https://me:Zq7R#kT0vWm3Xn@x.test/v1", "api_key=Zq7RkT0vWm3Xn:http", "sk-Zq7RkT0vWm3Xn"]
        {
            let body = format!(r##"{{"error":{{"type":"# {} {secret} was told"}}}}"##, "x".repeat(ahead));
            let failure = format!("{:?}", diagnose(&http(422, &body)));
            assert!(!failure.contains("Zq7R") && !failure.contains("Wm3Xn"), "{failure}");
        }
    }
}
