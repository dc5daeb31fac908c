//! Snapshots of whole answers.

use everturn_wire::Value;
use serde_json::json;

use super::{events, reader::read, retry, streamed, text, whole};

/// Returns the frames without their common fields.
fn shown(stream: &str) -> String {
    let frame = |frame: &str| {
        let Some(Ok(Value::Object(mut data))) = frame.strip_prefix("data: ").map(serde_json::from_str) else {
            return format!("{frame}\n");
        };
        for same in ["id", "object", "created", "model"] {
            data.remove(same);
        }
        let mut data = Value::Object(data);
        data.sort_all_objects();
        format!("data: {data}\n")
    };
    stream.trim_end().split("\n\n").map(frame).collect()
}

fn step(kind: &str) -> Value {
    json!({ "type": kind, "stepId": "t#0", "reason": "the connection was cut" })
}

fn done() -> Value {
    json!({ "type": "done", "reason": "stop", "usage": { "inputTokens": 12, "outputTokens": 5, "cacheReadTokens": 8 } })
}

fn sealed() -> Value {
    json!({ "type": "turn-sealed" })
}

/// Returns the stream, and what a client reads from it.
fn check(written: Value, holds: bool) -> String {
    let stream = streamed(&events(written), true, holds);
    read(&stream).unwrap_or_else(|why| panic!("{why}\n{stream}"));
    shown(&stream)
}

#[test]
fn a_turn_that_waits_twice_and_answers() {
    let thought = json!({ "type": "reasoning-delta", "delta": "Hm." });
    let (calm, ended) = (
        json!({ "type": "turn-start" }),
        json!({ "type": "retry-ended", "attempts": 1, "outcome": "recovered" }),
    );
    let written = json!([
        calm,
        retry(),
        ended,
        thought,
        text("Hel\"\n"),
        text("lo"),
        step("step-complete"),
        done(),
        sealed()
    ]);
    insta::assert_snapshot!(check(written.clone(), false));
    insta::assert_json_snapshot!(whole(&events(written)));
}

#[test]
fn calls_are_handed_back() {
    let calls = json!([
        { "toolCallId": "a", "toolName": "weather", "input": { "city": "Oslo" } },
        { "toolCallId": "b", "toolName": "time", "input": "{\"broken" },
    ]);
    let done = json!({ "type": "done", "reason": "tool-calls", "calls": calls });
    let written = json!([{ "type": "turn-start" }, step("step-complete"), done, sealed()]);
    insta::assert_snapshot!(check(written.clone(), false));
    insta::assert_json_snapshot!(whole(&events(written)));
}

#[test]
fn a_rewind_is_said_in_the_text_or_never_shown() {
    let written = json!([
        text("Once upon"),
        step("step-rewound"),
        text("Once upon a time"),
        step("step-complete"),
        done(),
        sealed()
    ]);
    insta::assert_snapshot!(check(written.clone(), false));
    insta::assert_snapshot!(check(written.clone(), true));
    let (_, body) = whole(&events(written));
    assert_eq!(body["choices"][0]["message"]["content"], "Once upon a time");
    // Nothing was shown, so there is nothing to report.
    let quiet = check(
        json!([
            step("step-rewound"),
            text("a"),
            step("step-complete"),
            step("step-rewound"),
            text("b"),
            done(),
            sealed()
        ]),
        false,
    );
    assert!(!quiet.contains("broke off"), "{quiet}");
}

#[test]
fn a_failure_is_the_last_that_is_said() {
    let error = json!({ "type": "error", "message": "HTTP 429: slow down", "category": "rate_limited", "retries": 21, "waitedMs": 27_105_000, "outcome": "exhausted" });
    let done = json!({ "type": "done", "reason": "error" });
    let written = json!([text("Onc"), error, step("step-complete"), done, sealed(), text("late")]);
    insta::assert_snapshot!(check(written.clone(), false));
    insta::assert_json_snapshot!(whole(&events(written)));
    let stopped = json!([text("Onc"), { "type": "done", "reason": "aborted" }, sealed()]);
    insta::assert_snapshot!(check(stopped, false));
}

#[test]
fn texts_of_two_steps_do_not_run_together() {
    let call = json!({ "type": "tool-result", "stepId": "t#0", "toolCallId": "c", "toolName": "n", "content": "6", "isError": false });
    let written = json!([
        text("I throw."),
        step("step-complete"),
        call,
        text("A"),
        text(" six."),
        step("step-complete"),
        done(),
        sealed()
    ]);
    let (_, body) = whole(&events(written.clone()));
    assert_eq!(body["choices"][0]["message"]["content"], "I throw.\n\nA six.");
    assert_eq!(read(&streamed(&events(written), false, false)).unwrap().text, "I throw.\n\nA six.");
}

#[test]
fn a_report_is_the_answer_where_there_is_no_other() {
    let report = json!({ "type": "final-report", "success": true, "report": { "flaky": ["a"] } });
    for (said, content) in [("", "{\"flaky\":[\"a\"]}"), ("Here.", "Here.")] {
        let written = json!([text(said), step("step-complete"), report, done(), sealed()]);
        let (_, body) = whole(&events(written.clone()));
        assert_eq!(body["choices"][0]["message"]["content"], content);
        assert_eq!(read(&streamed(&events(written), false, false)).unwrap().text, content);
    }
}

#[test]
fn failures_have_the_status_that_clients_know() {
    for (category, status, code) in [
        ("rate_limited", 429, "rate_limit_exceeded"),
        ("quota_exhausted", 429, "insufficient_quota"),
        ("overloaded", 503, "overloaded"),
        ("network", 503, "provider_unreachable"),
        ("timeout", 504, "provider_timeout"),
        ("context_overflow", 400, "context_length_exceeded"),
        ("content_policy", 400, "content_policy_violation"),
        ("auth", 401, "invalid_api_key"),
        ("not_found", 404, "model_not_found"),
        ("new_word", 502, "provider_error"),
    ] {
        let error = json!({ "type": "error", "message": "no", "category": category });
        let (found, body) = whole(&events(json!([error, { "type": "done", "reason": "error" }, sealed()])));
        assert_eq!((found, &body["error"]["code"]), (status, &json!(code)), "{category}");
    }
}

#[test]
fn words_of_providers_become_words_that_clients_know() {
    for (reason, finish) in [
        ("stop", "stop"),
        ("length", "length"),
        ("max-steps", "length"),
        ("content-filter", "content_filter"),
        ("end_turn", "stop"),
    ] {
        let (_, body) = whole(&events(json!([text("a"), { "type": "done", "reason": reason }, sealed()])));
        assert_eq!(body["choices"][0]["finish_reason"], finish, "{reason}");
    }
}

#[test]
fn a_failure_is_told_as_the_provider_told_it() {
    let failed =
        |error: Value| whole(&events(json!([error, { "type": "done", "reason": "error" }, sealed()])));
    let message = r#"HTTP 401: {"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#;
    let (status, body) =
        failed(json!({ "type": "error", "message": message, "code": "401", "category": "auth" }));
    let told = json!({ "message": "Incorrect API key provided", "type": "invalid_request_error", "param": null, "code": "invalid_api_key" });
    assert_eq!((status, &body["error"]), (401, &told));
    let message = r#"HTTP 422: {"error":{"message":"bad","param":"top_p","code":7}}"#;
    let (status, body) =
        failed(json!({ "type": "error", "message": message, "code": "422", "category": "invalid_request" }));
    let told = json!({ "message": "bad", "type": "invalid_request_error", "param": "top_p", "code": "7" });
    assert_eq!((status, &body["error"]), (422, &told));
    // Not a status, and no error object.
    let (status, body) =
        failed(json!({ "type": "error", "message": "no {", "code": "200", "category": "overloaded" }));
    assert_eq!((status, &body["error"]["message"]), (503, &json!("no {")));
}

#[test]
fn a_full_context_is_told_in_words_that_clients_look_for() {
    for message in [
        "HTTP 400: {\"error\":{\"message\":\"prompt is too long\",\"code\":\"x\"}}",
        "Maximum context length is 8",
    ] {
        let error =
            json!({ "type": "error", "message": message, "code": "400", "category": "context_overflow" });
        let (status, body) = whole(&events(json!([error, { "type": "done", "reason": "error" }, sealed()])));
        let told = body["error"]["message"].as_str().unwrap().to_lowercase();
        assert_eq!((status, &body["error"]["code"]), (400, &json!("context_length_exceeded")));
        assert_eq!(told.matches("maximum context length").count(), 1, "{told}");
    }
}

#[test]
fn a_cut_in_mid_answer_is_told_as_a_passing_failure() {
    let error = json!({ "type": "error", "message": "connection reset", "category": "network" });
    let written = json!([text("Onc"), error, { "type": "done", "reason": "error" }, sealed()]);
    let stream = streamed(&events(written), true, false);
    assert!(
        stream.contains("service unavailable") && stream.contains("\"code\":\"service_unavailable\""),
        "{stream}"
    );
    let error = json!({ "type": "error", "message": "filtered", "category": "content_policy" });
    let written = json!([text("Onc"), error, { "type": "done", "reason": "error" }, sealed()]);
    assert!(!streamed(&events(written), true, false).contains("unavailable"));
}

#[test]
fn token_counts_are_those_of_the_last_call() {
    let usage = |input: u64| json!({ "type": "usage", "stepId": "t#0", "usage": { "inputTokens": input, "outputTokens": 1 } });
    let (_, body) = whole(&events(json!([
        usage(7),
        text("a"),
        step("step-complete"),
        usage(9),
        text("b"),
        done(),
        sealed()
    ])));
    assert_eq!(body["usage"]["prompt_tokens"], 9);
}

#[test]
fn what_the_provider_reports_of_the_last_answer_is_passed_on() {
    let reported = json!({ "model": "m-1", "systemFingerprint": "f\"p", "serviceTier": "flex", "cost": 0.5 });
    let complete = json!({ "type": "step-complete", "stepId": "t#1", "reported": reported });
    let counts = json!({ "type": "usage", "usage": { "inputTokens": 3, "outputTokens": 2 } });
    let written = json!([text("Hi"), step("step-complete"), counts, complete, done(), sealed()]);
    let (_, body) = whole(&events(written.clone()));
    let stream = streamed(&events(written), true, false);
    let chunk = |nth_last: usize| -> Value {
        let frame = stream.trim_end().rsplit("\n\n").nth(nth_last).unwrap();
        serde_json::from_str(frame.strip_prefix("data: ").unwrap()).unwrap()
    };
    for answer in [&body, &chunk(1), &chunk(2)] {
        assert_eq!(
            (&answer["model"], &answer["system_fingerprint"], &answer["service_tier"]),
            (&json!("m-1"), &json!("f\"p"), &json!("flex"))
        );
    }
    for answer in [&body, &chunk(1)] {
        assert_eq!(answer["usage"]["cost"], 0.5);
    }
}
