//! Properties of the diagnosis of any failure.

use everturn_diagnosis::{Evidence, Stage, Transport, diagnose, explain};
use everturn_wire::Failure;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Pieces of real errors, so that random bodies reach the deeper rules.
const PIECES: &[&str] = &[
    "{\"error\":",
    "{\"message\":",
    "\"code\":429",
    "}",
    "[{",
    "]",
    "{'error': {'code': ",
    "None",
    "data: ",
    "event: error\n",
    "<html><title>",
    "</title>",
    "try again in ",
    "6m0s",
    "resets at ",
    "2026-09-01T00:00:00Z",
    "retry_after",
    ": 30",
    " 后",
    "秒",
    "rate limit",
    "limit",
    " requested 9",
    "must be at least 1, got -5",
    "\\\"",
    "'",
    "\"",
    "{{{{[[[[",
    "b'",
    "sk-",
    "https://",
    "\u{feff}",
    "é",
    "|1759420800",
    "/ month",
    "99999999999999999999",
    "-",
    ".",
    "#",
    ":http://",
];

fn stage() -> impl Strategy<Value = Stage> {
    prop_oneof![Just(Stage::Http), Just(Stage::InStream), Just(Stage::Transport)]
}

fn transport() -> impl Strategy<Value = Option<Transport>> {
    let kinds =
        vec![Transport::Dns, Transport::Tls, Transport::Connect, Transport::Cut, Transport::Truncated];
    prop::option::of(prop::sample::select(kinds))
}

fn body() -> impl Strategy<Value = String> {
    let pieces =
        || prop::collection::vec(prop::sample::select(PIECES), 0..40).prop_map(|pieces| pieces.concat());
    prop_oneof![".{0,300}", pieces(), value().prop_map(|value| value.to_string())]
}

/// JSON with relevant field names.
fn value() -> impl Strategy<Value = Value> {
    let key = prop::sample::select(vec![
        "error",
        "message",
        "code",
        "type",
        "status",
        "details",
        "metadata",
        "raw",
        "headers",
        "retryDelay",
        "reset",
        "param",
    ]);
    let leaf =
        prop_oneof![".{0,20}".prop_map(Value::from), any::<f64>().prop_map(Value::from), Just(Value::Null)];
    leaf.prop_recursive(6, 40, 5, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..5)
                .prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()),
        ]
    })
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    let name = prop::sample::select(vec![
        "retry-after",
        "retry-after-ms",
        "x-ratelimit-reset",
        "x-ratelimit-remaining",
        "ratelimit",
        "date",
        "x-amzn-errortype",
    ]);
    let value = prop_oneof![".{0,20}".boxed(), any::<f64>().prop_map(|number| number.to_string()).boxed()];
    prop::collection::vec((name.prop_map(str::to_owned), value), 0..6)
}

fn evidence<'a>(status: Option<u16>, headers: &'a [(&'a str, &'a str)], body: &'a str) -> Evidence<'a> {
    Evidence { stage: Stage::Http, status, headers, body, transport: None, now: 1_788_220_800_000 }
}

fn said(failure: &Failure) -> String {
    serde_json::to_string(failure).expect("a failure is JSON")
}

proptest! {
    #[test]
    fn nothing_panics_and_all_output_is_bounded(
        stage in stage(), transport in transport(), status in prop::option::of(any::<u16>()),
        headers in headers(), body in body(), now in any::<u64>(),
    ) {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let evidence = Evidence { stage, status, headers: &headers, body: &body, transport, now };
        let (failure, explained) = (diagnose(&evidence), explain(&evidence));
        prop_assert_eq!(&explained.failure, &failure);
        prop_assert_eq!(explained.hint.is_some(), failure.hint_ms.is_some());
        prop_assert!(!explained.category.is_empty());
        prop_assert!(explained.category.iter().chain(&explained.hint).all(|reason| reason.len() <= 300));
        prop_assert!(failure.message.len() <= 4096);
        prop_assert!(failure.provider_code.is_none_or(|code| code.len() <= 96));
        prop_assert!(failure.code.is_none_or(|code| code.len() <= 5));
        prop_assert!(failure.hint_ms.is_none_or(|wait| (1..=366 * 86_400_000).contains(&wait)));
    }

    #[test]
    fn a_secret_never_survives(
        before in "[a-z ,.]{0,40}", after in "[ ,.\"']{1}[a-z ]{0,40}", secret in "[A-Za-z0-9]{3}[0-9][A-Z][A-Za-z0-9_]{15,40}",
        form in 0usize..11, lead in prop::sample::select(vec!["", "", "token ", "Bearer ", "api_key: ", "MY_", "key="]),
    ) {
        let form = match form {
            0 => format!("sk-{secret}"),
            1 => format!("sk-proj-{secret}"),
            2 => format!("Bearer {secret}"),
            3 => format!("authorization: bearer {secret}"),
            4 => format!("AIza{secret}"),
            5 => format!("https://x.test/v1?key={secret}"),
            6 => format!("\"api_key\": \"{secret}\""),
            7 => format!("https://user:{secret}@x.test/v1"),
            8 => format!("x-api-key: {secret}"),
            9 => format!("gsk_{secret}"),
            _ => format!("{{\\\"access_token\\\":\\\"{secret}\\\"}}"),
        };
        let quoted = format!("{lead}{form}");
        for body in [
            format!("{before} {quoted}{after}"),
            json!({"error": {"message": format!("{before} {quoted}{after}"), "code": quoted}}).to_string(),
        ] {
            let headers = [("retry-after", "5"), ("x-error-code", body.as_str())];
            for headers in [&[][..], &headers] {
                let explained = explain(&evidence(Some(401), headers, &body));
                let reasons = explained.category.iter().chain(&explained.hint);
                prop_assert!(!reasons.cloned().collect::<String>().contains(&secret), "{explained:?}");
                prop_assert!(!said(&explained.failure).contains(&secret), "{explained:?}");
            }
        }
    }

    #[test]
    fn a_secret_at_the_length_limit_never_survives_in_part(padding in 4000usize..4100, secret in "[A-Z][0-9][A-Za-z0-9]{30}") {
        let body = format!("{} sk-{secret}", "x".repeat(padding));
        let failure = diagnose(&evidence(Some(500), &[], &body));
        prop_assert!(!said(&failure).contains(&secret[..8]), "{failure:?}");
    }

    #[test]
    fn a_wait_needs_evidence(
        text in "[b-hj-qu-z ]{0,30} [0-9]{1,10}(s|ms| seconds| minutes|h)? [b-hj-qu-z0-9 ]{0,30}", status in 400u16..600,
    ) {
        for body in [text.clone(), json!({"error": {"message": text, "code": text}}).to_string()] {
            prop_assert_eq!(diagnose(&evidence(Some(status), &[], &body)).hint_ms, None);
        }
    }

    #[test]
    fn a_requested_wait_is_exact_to_the_millisecond(seconds in 1u64..100_000, millis in 0u64..1000) {
        let wait = seconds * 1000 + millis;
        let prose = format!("Please try again in {seconds}.{millis:03}s.");
        let header = format!("{seconds}.{millis:03}");
        let after = [("retry-after", header.as_str())];
        prop_assert_eq!(diagnose(&evidence(Some(429), &[], &prose)).hint_ms, Some(wait));
        prop_assert_eq!(diagnose(&evidence(Some(429), &after, "")).hint_ms, Some(wait));
    }

    #[test]
    fn a_quoted_request_never_makes_a_permanent_failure_transient(echo in "[a-z ]{10,60}") {
        let body = json!({"error": {
            "message": format!("Invalid value for 'content': 'rate limit reached, overloaded, try again in 5s {echo}'"),
            "type": "invalid_request_error",
        }});
        let failure = diagnose(&evidence(Some(400), &[], &body.to_string()));
        prop_assert!(!failure.retryable && failure.hint_ms.is_none(), "{failure:?}");
    }
}

/// Bodies that make careless parsers slow. Each must finish promptly, or the test run hangs.
#[test]
fn hostile_bodies_are_cheap() {
    for piece in [
        "{",
        "[",
        "[{",
        "{'",
        "{\"",
        "'a ",
        "\" a",
        "sk-",
        "bearer ",
        "key=",
        "https://",
        "limit ",
        "<",
        "data:\n\n",
        "后",
    ] {
        let body = piece.repeat(200_000 / piece.len());
        for stage in [Stage::Http, Stage::InStream, Stage::Transport] {
            let failure = diagnose(&Evidence { stage, ..evidence(Some(500), &[], &body) });
            assert!(failure.message.len() <= 4096);
        }
    }
}
