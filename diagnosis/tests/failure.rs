//! What a person and a turn are told of a failure.

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
fn what_nobody_knows_is_called_unknown() {
    let failure = diagnose(&Evidence { status: None, ..http(0, "flux capacitor offline") });
    assert_eq!((failure.category, failure.retryable, failure.code), (Category::Unknown, false, None));
}

#[test]
fn a_long_wait_is_a_wall_and_keeps_its_hint() {
    let after = |seconds| {
        let headers = [("retry-after", seconds)];
        let failure = diagnose(&Evidence { headers: &headers, ..http(429, "") });
        (failure.category, failure.retryable, failure.hint_ms)
    };
    assert_eq!(after("3600"), (Category::RateLimited, true, Some(3_600_000)));
    assert_eq!(after("3601"), (Category::QuotaExhausted, false, Some(3_601_000)));
}

#[test]
fn the_transports_own_kind_is_believed() {
    let of =
        |transport| diagnose(&Evidence { transport: Some(transport), status: None, ..http(0, "") }).category;
    assert_eq!(of(Transport::IdleTimeout), Category::Timeout);
    assert_eq!(of(Transport::Cut), Category::Network);
    assert_eq!(of(Transport::Truncated), Category::InvalidResponse);
}

#[test]
fn a_wrong_local_clock_does_not_spoil_a_date() {
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
