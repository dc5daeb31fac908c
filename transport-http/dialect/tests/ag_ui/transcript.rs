//! Snapshots of whole runs.

use everturn_dialect::{
    Event, Translator as _,
    ag_ui::{Kept, Run, history, queued},
};
use everturn_wire::{Queued, StoredChunk, TurnMetrics, Value};
use serde_json::json;

use super::{events, head, reader::read, streamed};

const HAD: &str = r#"[{"id":"u","role":"user","content":"weather?"}]"#;

fn step(kind: &str) -> Value {
    json!({ "type": kind, "stepId": "t#0", "reason": "the connection was cut" })
}

fn text(delta: &str) -> Value {
    json!({ "type": "text-delta", "delta": delta })
}

fn thought(delta: &str) -> Value {
    json!({ "type": "reasoning-delta", "delta": delta })
}

fn done(reason: &str) -> Value {
    let usage = json!({ "inputTokens": 12, "outputTokens": 5, "cacheReadTokens": 8, "cacheWriteTokens": 2 });
    json!({ "type": "done", "reason": reason, "usage": usage })
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

/// Returns the run, which a client of this version must be able to read.
fn check(written: Value, is_one: bool) -> String {
    let stream = streamed(&events(written), is_one, HAD);
    read(&stream, is_one, HAD).unwrap_or_else(|why| panic!("{why}\n{stream}"));
    stream
}

#[test]
fn a_turn_that_waits_calls_a_tool_and_answers() {
    let retry = json!({
        "type": "provider-retry", "attempt": 0, "delayMs": 3000, "nextAt": 9000, "code": "429",
        "message": "HTTP 429: {\n\"error\": \"slow\n\ndown\"}",
    });
    let written = json!([
        { "type": "user-message", "text": "weather?" },
        { "type": "turn-start" },
        retry,
        { "type": "retry-ended", "attempts": 1, "outcome": "recovered" },
        thought("Hm."),
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
    insta::assert_snapshot!(check(written.clone(), true));
    let old = check(written, false);
    assert!(!old.contains("cacheWriteInputTokens") && !old.contains("protocolVersion"), "{old}");
}

#[test]
fn an_approval_is_an_interrupt_and_another_run() {
    let before = events(json!([of_call("tool-call"), step("step-complete"), of_call("approval-requested")]));
    let mut out = Vec::new();
    let mut first = Run::new(head(false), &"t".into(), Kept::of(HAD), &mut out);
    for event in &before {
        first.push(&Event::Other(event), &mut out);
    }
    first.wait_for_people(&mut out);
    let first_run = String::from_utf8(std::mem::take(&mut out)).unwrap();
    read(&first_run, false, HAD).unwrap();
    let asked =
        json!({ "turnId": "t", "stepId": "t#0", "toolCallId": "w", "toolName": "weather", "input": {} });
    let pending = [serde_json::from_value(asked).unwrap()];
    let mut second = Run::continued(head(false), &"t".into(), &pending, Kept::of(HAD), &mut out);
    let resolved =
        json!({ "type": "approval-resolved", "stepId": "t#0", "toolCallId": "w", "verdict": "allowed" });
    let rest = json!([
        resolved,
        of_call("tool-result"),
        text("Well."),
        step("step-complete"),
        done("stop"),
        sealed()
    ]);
    for event in events(rest) {
        second.push(&Event::Other(&event), &mut out);
    }
    let second_run = String::from_utf8(out).unwrap();
    read(&second_run, false, HAD).unwrap();
    insta::assert_snapshot!(format!("{first_run}--\n{second_run}"));
}

#[test]
fn a_rewind_is_a_snapshot_of_what_stays() {
    let written = json!([
        text("I look."),
        of_call("tool-call"),
        step("step-complete"),
        of_call("tool-result"),
        thought("Hm"),
        text("Once upon"),
        step("step-rewound"),
        text("Once upon a time"),
        step("step-complete"),
        done("stop"),
        sealed(),
    ]);
    for is_one in [true, false] {
        let stream = check(written.clone(), is_one);
        let told = read(&stream, is_one, HAD).unwrap();
        assert_eq!(told.text("assistant"), "I look.Once upon a time");
        assert_eq!((told.text("user"), told.text("tool")), ("weather?".to_owned(), "sunny".to_owned()));
    }
    insta::assert_snapshot!(check(written.clone(), true));
    // The history is too long to be kept, so the text says that it starts again.
    let long = format!(r#"[{{"id":"u","role":"user","content":"{}"}}]"#, "x".repeat(300 << 10));
    let stream = streamed(&events(written), true, &long);
    let told = read(&stream, true, &long).unwrap();
    assert!(!stream.contains("MESSAGES_SNAPSHOT"));
    assert!(told.text("assistant").contains("The answer broke off here"), "{}", told.text("assistant"));
}

#[test]
fn a_run_that_grew_too_long_is_not_kept() {
    let long: Vec<Value> = (0..40).map(|_| text(&"x".repeat(8 << 10))).collect();
    let mut written = vec![text("I look."), step("step-complete")];
    written.extend(long);
    written.extend([step("step-rewound"), text("Short."), step("step-complete"), done("stop"), sealed()]);
    let stream = check(Value::Array(written), true);
    let told = read(&stream, true, HAD).unwrap().text("assistant");
    assert!(!stream.contains("MESSAGES_SNAPSHOT"));
    assert!(told.contains("The answer broke off here") && told.ends_with("Short."));
}

#[test]
fn a_run_ends_as_its_turn_does() {
    let error = json!({ "type": "error", "message": "HTTP 429: slow down", "category": "rate_limited", "retries": 21, "waitedMs": 27_105_000, "outcome": "exhausted" });
    let failed = json!([text("Onc"), error, step("step-complete"), done("error"), sealed(), text("late")]);
    insta::assert_snapshot!(check(failed, true));
    for (reason, is_one, outcome) in [
        ("aborted", true, Some("cancelled")),
        ("aborted", false, None),
        ("max-steps", false, Some("success")),
        ("stop", true, Some("success")),
    ] {
        let stream = check(json!([text("a"), done(reason), sealed()]), is_one);
        let told = read(&stream, is_one, HAD).unwrap();
        assert_eq!(told.outcome.as_ref().and_then(|outcome| outcome["type"].as_str()), outcome, "{stream}");
        assert_eq!(told.custom.len(), usize::from(reason != "stop"), "{stream}");
    }
}

#[test]
fn a_queued_message_has_a_run_of_its_own() {
    let told: Queued = serde_json::from_value(json!({
        "conversationId": "c", "startedTurn": false, "queue": [{ "messageId": "m", "text": "and\n" }]
    }))
    .unwrap();
    for is_one in [true, false] {
        let stream = String::from_utf8(queued(&head(is_one), &told)).unwrap();
        let told = read(&stream, is_one, "[]").unwrap();
        assert_eq!((told.custom, told.is_finished), (vec!["everturn.queued".to_owned()], true));
    }
}

fn chunk(seq: u64, role: &str, chunk: Value) -> Value {
    let mut stored = json!({ "seq": seq, "role": role });
    stored["chunk"] = chunk;
    stored
}

fn say(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

#[test]
fn a_history_has_the_messages_of_a_turn_that_was_steered() {
    let result = json!({ "type": "tool-result", "toolCallId": "w", "toolName": "weather", "content": "sunny", "isError": false });
    let chunks = json!([
        chunk(1, "user", say("weather?")),
        chunk(2, "assistant", say("I look.")),
        chunk(
            3,
            "assistant",
            json!({ "type": "tool-call", "toolCallId": "w", "toolName": "weather", "input": {}, "stepId": "t#0" })
        ),
        chunk(4, "tool", result),
        chunk(5, "user", say("and tomorrow?")),
        chunk(6, "assistant", say("Sunny, too.")),
        chunk(7, "system", json!({ "type": "system", "text": "Write a report." })),
        chunk(8, "assistant", say("The report.")),
    ]);
    let chunks: Vec<StoredChunk> = serde_json::from_value(chunks).unwrap();
    let turn = TurnMetrics { first_seq: Some(1), last_seq: Some(8), ..TurnMetrics::new("t".into()) };
    let told = history(&chunks, &[turn], None);
    let mut out = Vec::new();
    let mut run = Run::connected(head(true), &"t".into(), &json!([]), &mut out);
    let streamed = events(json!([
        { "type": "user-message", "text": "weather?" },
        text("I look."),
        of_call("tool-call"),
        step("step-complete"),
        of_call("tool-result"),
        { "type": "steering", "text": "and tomorrow?" },
        text("Sunny, too."),
        step("step-complete"),
        text("The report."),
        step("step-complete"),
        done("stop"),
        sealed(),
    ]));
    for event in &streamed {
        run.push(&Event::Other(event), &mut out);
    }
    let streamed = read(&String::from_utf8(out).unwrap(), true, "[]").unwrap();
    let shown =
        |message: &Value| [message["id"].clone(), message["role"].clone(), message["content"].clone()];
    let of_history: Vec<_> = told.as_array().unwrap().iter().map(shown).collect();
    let of_stream: Vec<_> = streamed.messages.iter().map(|(_, message)| shown(message)).collect();
    assert_eq!(of_history, of_stream);
}

#[test]
fn a_history_has_the_ids_that_were_streamed() {
    let mut again = chunk(9, "user", say("again"));
    again["supersedes"] = 7.into();
    let chunks = json!([
        chunk(1, "user", say("weather?")),
        chunk(2, "assistant", json!({ "type": "thinking", "text": "Hm." })),
        chunk(3, "assistant", say("I look.")),
        chunk(
            4,
            "assistant",
            json!({ "type": "tool-call", "toolCallId": "w", "toolName": "weather", "input": {} })
        ),
        chunk(
            5,
            "tool",
            json!({ "type": "tool-result", "toolCallId": "w", "toolName": "weather", "content": "sunny", "isError": false })
        ),
        chunk(6, "assistant", say("Sunny.")),
        chunk(7, "user", say("what?")),
        chunk(8, "assistant", say("Never mind.")),
        again,
    ]);
    let chunks: Vec<StoredChunk> = serde_json::from_value(chunks).unwrap();
    let turn = |id: &str, first, last| TurnMetrics {
        first_seq: Some(first),
        last_seq: Some(last),
        ..TurnMetrics::new(id.into())
    };
    let turns = [turn("t", 1, 6), turn("t2", 7, 8), turn("t3", 9, 9)];
    let edited = history(&chunks, &turns, Some(9));
    assert_eq!(edited.as_array().unwrap().len(), 5, "a turn supersedes the last message");
    let told = history(&chunks, &turns, None);
    let streamed = streamed(
        &events(json!([
            thought("Hm."),
            text("I look."),
            of_call("tool-call"),
            step("step-complete"),
            of_call("tool-result"),
            text("Sunny."),
            step("step-complete"),
            done("stop"),
            sealed(),
        ])),
        true,
        "[]",
    );
    let streamed: Vec<String> =
        read(&streamed, true, "[]").unwrap().messages.into_iter().map(|(id, _)| id).collect();
    let ids: Vec<&str> =
        told.as_array().unwrap().iter().map(|message| message["id"].as_str().unwrap()).collect();
    assert_eq!(ids[1..5], streamed);
    assert_eq!(ids.len(), 6, "what was superseded is not shown: {ids:?}");
    insta::assert_json_snapshot!(told);
}
