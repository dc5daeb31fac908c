//! Snapshots of whole answers.

use everturn_dialect::{
    Event, Translator as _,
    ai_sdk::{Chunks, Version, queued},
};
use everturn_wire::{Queued, Value};
use serde_json::json;

use super::{VERSIONS, events, reader::read, streamed};

fn step(kind: &str) -> Value {
    json!({ "type": kind, "stepId": "t#0", "reason": "the connection was cut" })
}

fn text(delta: &str) -> Value {
    json!({ "type": "text-delta", "delta": delta })
}

fn done(reason: &str) -> Value {
    json!({ "type": "done", "reason": reason, "usage": { "inputTokens": 12, "outputTokens": 5, "cacheReadTokens": 8 } })
}

fn sealed() -> Value {
    json!({ "type": "turn-sealed" })
}

fn of_call(kind: &str) -> Value {
    json!({
        "type": kind, "stepId": "t#0", "toolCallId": "w", "toolName": "weather", "input": { "city": "Oslo" },
        "content": "sunny", "isError": false, "reason": "it asks the network", "data": "asking\n", "stream": "stderr",
    })
}

fn answer(verdict: &str) -> Value {
    json!({ "type": "approval-resolved", "stepId": "t#0", "toolCallId": "w", "verdict": verdict, "reason": "go on" })
}

/// Returns the stream, which a client of this version must be able to read.
fn check(written: Value, version: Version) -> String {
    let stream = streamed(&events(written), version);
    read(&stream, version, &[]).unwrap_or_else(|why| panic!("{why}\n{stream}"));
    stream
}

#[test]
fn a_turn_that_waits_twice_calls_a_tool_and_answers() {
    let retry = |attempt: u32| {
        json!({
            "type": "provider-retry", "attempt": attempt, "delayMs": 3000, "nextAt": 9000, "code": "429",
            "message": "HTTP 429: {\n\"error\": \"slow\n\ndown\"}",
        })
    };
    let written = json!([
        { "type": "user-message", "text": "weather?" },
        { "type": "turn-start" },
        retry(0),
        retry(1),
        { "type": "retry-ended", "attempts": 2, "outcome": "recovered" },
        { "type": "reasoning-delta", "delta": "Hm." },
        text("Let me \"look\".\n"),
        of_call("tool-call"),
        step("step-complete"),
        of_call("tool-output"),
        of_call("tool-result"),
        text("Sun"),
        text("ny."),
        step("step-complete"),
        done("stop"),
        sealed(),
    ]);
    insta::assert_snapshot!(check(written.clone(), Version::Seven));
    for version in VERSIONS {
        let told = read(&streamed(&events(written.clone()), version), version, &[]).unwrap();
        assert_eq!(told.text(), "Let me \"look\".\nSunny.", "{version:?}");
        assert_eq!(told.data, ["retry", "retry", "retry-ended", "tool-output"], "{version:?}");
        assert_eq!((told.finish.as_deref(), told.is_done), (Some("stop"), true), "{version:?}");
    }
}

#[test]
fn an_approval_takes_two_answers() {
    let before = events(json!([of_call("tool-call"), step("step-complete"), of_call("approval-requested")]));
    let mut denial = of_call("tool-result");
    denial["isError"] = true.into();
    denial["decisions"] = json!([{ "by": "person", "verdict": "denied" }]);
    for (result, answered) in [(of_call("tool-result"), "allowed"), (denial, "denied")] {
        let mut out = Vec::new();
        let mut first = Chunks::new(Version::Seven, &"c".into(), &"t".into(), &mut out);
        for event in &before {
            first.push(&Event::Other(event), &mut out);
        }
        assert!(!first.asked().is_empty());
        first.wait_for_people(&mut out);
        let asked: Value =
            json!({ "turnId": "t", "stepId": "t#0", "toolCallId": "w", "toolName": "weather", "input": {} });
        let pending = [serde_json::from_value(asked).unwrap()];
        let first_answer = String::from_utf8(std::mem::take(&mut out)).unwrap();
        let mut second = Chunks::continued(Version::Seven, [], &pending, &mut out);
        let rest = events(json!([
            answer(answered),
            result,
            text("Well."),
            step("step-complete"),
            done("stop"),
            sealed()
        ]));
        for event in &rest {
            second.push(&Event::Other(event), &mut out);
        }
        assert!(second.asked().is_empty() && second.is_over());
        let second_answer = String::from_utf8(out).unwrap();
        read(&first_answer, Version::Seven, &[]).unwrap();
        read(&second_answer, Version::Seven, &["t#0:w"]).unwrap();
        insta::assert_snapshot!(answered, format!("{first_answer}--\n{second_answer}"));
    }
}

#[test]
fn an_answer_given_elsewhere_is_shown_where_that_can_be() {
    let written = json!([
        of_call("tool-call"),
        of_call("approval-requested"),
        answer("allowed"),
        of_call("tool-result"),
        step("step-complete"),
        done("stop"),
        sealed(),
    ]);
    for (version, asks, answers, data) in
        [(Version::Seven, true, true, 0), (Version::Six, true, false, 0), (Version::Five, false, false, 1)]
    {
        let stream = check(written.clone(), version);
        assert_eq!(stream.contains("tool-approval-request"), asks, "{stream}");
        assert_eq!(stream.contains("tool-approval-response"), answers, "{stream}");
        assert_eq!(stream.matches("data-everturn-approval-requested").count(), data, "{stream}");
    }
}

#[test]
fn a_rewind_takes_back_what_newer_clients_can_forget() {
    let written = json!([
        { "type": "reasoning-delta", "delta": "Hm" },
        text("Once upon"),
        of_call("tool-call"),
        step("step-rewound"),
        text("Once upon a time"),
        step("step-complete"),
        done("stop"),
        sealed(),
    ]);
    insta::assert_snapshot!(check(written.clone(), Version::Seven));
    insta::assert_snapshot!(check(written, Version::Six));
    // Nothing was shown, so there is nothing to withdraw.
    let quiet = json!([
        step("step-rewound"),
        text("a"),
        step("step-complete"),
        step("step-rewound"),
        text("b"),
        done("stop"),
        sealed()
    ]);
    for version in VERSIONS {
        let stream = check(quiet.clone(), version);
        assert!(!stream.contains("broke off") && !stream.contains("reset-step"), "{stream}");
    }
}

#[test]
fn an_answer_ends_as_its_turn_does() {
    let error = json!({ "type": "error", "message": "HTTP 429: slow down", "retries": 21, "waitedMs": 27_105_000, "outcome": "exhausted" });
    let failed = check(
        json!([text("Onc"), error, step("step-complete"), done("error"), sealed(), text("late")]),
        Version::Seven,
    );
    insta::assert_snapshot!(failed);
    insta::assert_snapshot!(check(json!([text("Onc"), done("aborted"), sealed()]), Version::Seven));
    for (reason, finish) in [
        ("stop", "stop"),
        ("length", "length"),
        ("max-steps", "other"),
        ("content-filter", "content-filter"),
        ("end_turn", "other"),
    ] {
        let stream = check(json!([text("a"), done(reason), sealed()]), Version::Five);
        assert_eq!(read(&stream, Version::Five, &[]).unwrap().finish.as_deref(), Some(finish));
    }
}

#[test]
fn a_report_is_shown_where_there_is_no_other_answer() {
    let report = json!({ "type": "final-report", "success": true, "report": { "flaky": ["a"] } });
    for (said, shown) in [("", "{\"flaky\":[\"a\"]}"), ("Here.", "Here.")] {
        let stream =
            check(json!([text(said), step("step-complete"), report, done("stop"), sealed()]), Version::Seven);
        assert_eq!(read(&stream, Version::Seven, &[]).unwrap().text(), shown);
    }
}

#[test]
fn a_queued_message_adds_no_answer() {
    let told: Queued = serde_json::from_value(json!({
        "conversationId": "c", "startedTurn": false, "queue": [{ "messageId": "m", "text": "and\n" }]
    }))
    .unwrap();
    let stream = String::from_utf8(queued(&told)).unwrap();
    for version in VERSIONS {
        let told = read(&stream, version, &[]).unwrap();
        assert_eq!((told.message_id, told.parts, told.data), (None, Vec::new(), vec!["queued".to_owned()]));
    }
}

#[test]
fn a_late_answer_closes_its_call_once_it_is_known() {
    let mut out = Vec::new();
    let mut chunks = Chunks::continued(Version::Seven, ["t#0:w".to_owned()], &[], &mut out);
    chunks.close_call("t#0:w", "too late", &mut out);
    chunks.close_call("t#9:x", "too late", &mut out);
    chunks.finish(&mut out);
    let mut told = read(str::from_utf8(&out).unwrap(), Version::Seven, &["t#0:w"]).unwrap();
    assert_eq!(told.call("t#0:w").unwrap(), "tool-output-error");
    assert!(told.is_done && chunks.is_over());
}
