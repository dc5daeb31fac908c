//! The reasons behind diagnoses.

use everturn_diagnosis::{Evidence, Stage, Transport, explain};

/// Returns the reasons for the category, then that for the wait.
fn reasons(evidence: &Evidence<'_>) -> Vec<String> {
    let explained = explain(evidence);
    explained.category.into_iter().chain(explained.hint).collect()
}

fn http<'a>(status: u16, headers: &'a [(&'a str, &'a str)], body: &'a str) -> Evidence<'a> {
    Evidence { stage: Stage::Http, status: Some(status), headers, body, transport: None, now: 0 }
}

#[test]
fn reasons_name_evidence_and_its_location() {
    for (evidence, expected) in [
        (
            http(529, &[("Retry-After", "8")], r#"{"type":"error","error":{"type":"overloaded_error"}}"#),
            &["the body's error.type is `overloaded_error`", "header retry-after: 8"][..],
        ),
        (http(503, &[], "<html><title>Oops</title></html>"), &["the status is 503"]),
        (
            http(400, &[("x-amzn-errortype", "ThrottlingException")], "{}"),
            &["header x-amzn-errortype is `ThrottlingException`"],
        ),
        (
            http(429, &[], r#"{"error":{"message":"Rate limit reached. Please try again in 20s."}}"#),
            &["the text says \"rate limit reached\"", "the text names the wait"],
        ),
        (http(429, &[("retry-after", "7200")], ""), &["the status is 429", "header retry-after: 7200"]),
        (
            http(500, &[("x-should-retry", "false")], ""),
            &["the status is 500", "header x-should-retry: false"],
        ),
        (
            http(
                429,
                &[("x-ratelimit-remaining-tokens", "0"), ("x-ratelimit-reset-tokens", "6m0s")],
                r#"{"error":{"type":"tokens","code":"rate_limit_exceeded"}}"#,
            ),
            &["the body's error.code is `rate_limit_exceeded`", "header x-ratelimit-reset-tokens: 6m0s"],
        ),
        (
            http(429, &[], r#"[{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"12s"}]}}]"#),
            &[
                "the body's error.status is `RESOURCE_EXHAUSTED`",
                "the body's error.details.retryDelay is 12s",
            ],
        ),
        (
            http(502, &[], r#"{"error":{"message":"{\"error\":{\"code\":\"insufficient_quota\"}}"}}"#),
            &["the body's error.message.error.code is `insufficient_quota`"],
        ),
        (
            http(200, &[], r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#),
            &["the body's promptFeedback.blockReason is there"],
        ),
        (
            http(400, &[], ""),
            &["the status is 400 without a body, as some servers refuse an overlong request"],
        ),
        (http(200, &[], ""), &["the response is successful but has no answer"]),
    ] {
        assert_eq!(reasons(&evidence), expected, "{evidence:?}");
    }
}

#[test]
fn a_broken_connection_has_reasons_too() {
    let broken = |transport, body| {
        reasons(&Evidence { stage: Stage::Transport, status: None, transport, ..http(0, &[], body) })
    };
    assert_eq!(broken(Some(Transport::Dns), "x"), ["the name did not resolve"]);
    assert_eq!(broken(None, "tcp connect error: Connection refused"), ["the text says \"refused\""]);
    assert_eq!(broken(None, "?"), ["there was no response, and no cause is known"]);
}

#[test]
fn an_irrelevant_wait_is_not_a_reason_for_the_category() {
    let explained = explain(&http(503, &[("retry-after", "8")], ""));
    assert_eq!((explained.category.len(), explained.hint.is_some()), (1, true));
    let asked = explain(&http(402, &[("retry-after", "8")], ""));
    assert_eq!(asked.category, ["the status is 402", "a wait was requested"]);
    assert!(asked.failure.retryable);
}
