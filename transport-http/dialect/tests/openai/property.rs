//! Whatever the order of events, the output can be read by a strict client.

use everturn_dialect::{
    Event,
    openai::{Chunks, Completion},
};
use everturn_wire::{EventBody, Value};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::{events, head, reader::read, retry};

/// An event of each kind that matters to the client, and of some that do not.
fn any_event() -> impl Strategy<Value = Value> {
    let word = "[a-z \"\\\\\n\r\u{2028}é\u{0}]{0,6}";
    let of_text = (select(vec!["text-delta", "reasoning-delta"]), word)
        .prop_map(|(kind, delta)| json!({ "type": kind, "delta": delta }));
    let reason = select(vec![
        "stop",
        "tool-calls",
        "length",
        "content-filter",
        "max-steps",
        "error",
        "aborted",
        "end_turn",
    ]);
    let call = (word, word)
        .prop_map(|(id, name)| json!({ "toolCallId": id, "toolName": name, "input": { "a": name } }));
    let done = (reason, vec(call, 0..3), any::<bool>()).prop_map(|(reason, calls, counts)| {
        let mut done = json!({ "type": "done", "reason": reason, "calls": calls });
        if counts {
            done["usage"] = json!({ "inputTokens": 7, "outputTokens": u64::MAX });
        }
        done
    });
    let step = json!({ "stepId": "t#0", "toolCallId": "c", "toolName": "n\nn", "input": {}, "content": "x", "isError": false });
    let of_step = select(vec!["step-complete", "tool-call", "tool-result", "approval-requested"]).prop_map(
        move |kind| {
            let mut event = step.clone();
            event["type"] = kind.into();
            event
        },
    );
    prop_oneof![
        6 => of_text,
        2 => done,
        2 => of_step,
        1 => Just(retry()),
        1 => Just(json!({ "type": "step-rewound", "stepId": "t#0", "reason": "cut" })),
        1 => Just(json!({ "type": "retry-ended", "attempts": 1, "outcome": "recovered" })),
        1 => Just(json!({ "type": "provider-silent", "stepId": "t#0", "silentMs": 5, "alive": false })),
        1 => Just(json!({ "type": "error", "message": "no\r\n\r\ndata: {}", "category": "overloaded" })),
        1 => Just(json!({ "type": "turn-sealed" })),
        1 => Just(json!({ "type": "final-report", "success": true, "report": { "a": "b\n" } })),
        1 => Just(json!({ "type": "turn-start" })),
        1 => Just(json!({ "type": "usage", "usage": { "inputTokens": 1, "outputTokens": 1 } })),
    ]
}

/// Returns the text that was not withdrawn.
fn text_of(events: &[EventBody]) -> String {
    let (mut text, mut step) = (String::new(), 0);
    for event in events {
        match event {
            EventBody::TextDelta { delta } => {
                if step > 0 && step == text.len() && !delta.is_empty() {
                    text.push_str("\n\n");
                }
                text.push_str(delta);
            }
            EventBody::FinalReport(report) if text.is_empty() => {
                text = report.report.as_ref().unwrap().to_string();
            }
            EventBody::StepRewound { .. } => text.truncate(step),
            EventBody::StepComplete { .. } => step = text.len(),
            EventBody::Done { .. } | EventBody::TurnSealed => break,
            _ => {}
        }
    }
    text
}

proptest! {
    #[test]
    fn a_strict_client_reads_every_stream(
        written in vec(any_event(), 0..24), include_usage: bool, holds: bool, silences in vec(any::<bool>(), 24)
    ) {
        let events = events(Value::Array(written));
        let mut chunks = Chunks::new(&head(), include_usage, holds);
        let mut out = Vec::new();
        for (event, is_silent) in events.iter().zip(silences) {
            chunks.push(&Event::Other(event), &mut out);
            if is_silent && !chunks.is_over() {
                chunks.keep_alive(&mut out);
            }
            // Every prefix is readable.
            read(str::from_utf8(&out).unwrap()).map_err(TestCaseError::fail)?;
        }
        let told = read(str::from_utf8(&out).unwrap()).map_err(TestCaseError::fail)?;
        let is_sealed = events.iter().any(|event| matches!(event, EventBody::TurnSealed));
        prop_assert_eq!(chunks.is_over(), is_sealed);
        prop_assert_eq!(told.is_done || told.error.is_some(), is_sealed);
        prop_assert!(!(told.is_done && chunks.failure().is_some()));
        prop_assert!(told.usage.is_none() || include_usage);
        if holds && told.is_done {
            // No withdrawn text was ever shown.
            prop_assert_eq!(told.text, text_of(&events));
        }
    }

    #[test]
    fn an_answer_in_one_piece_is_what_a_holding_stream_shows(written in vec(any_event(), 0..24)) {
        let mut events = events(Value::Array(written));
        events.push(EventBody::TurnSealed);
        let mut chunks = Chunks::new(&head(), true, true);
        let mut completion = Completion::new(head());
        let mut out = Vec::new();
        for event in &events {
            chunks.push(&Event::Other(event), &mut out);
            completion.push(&Event::Other(event));
            if completion.is_over() {
                break;
            }
        }
        let told = read(str::from_utf8(&out).unwrap()).map_err(TestCaseError::fail)?;
        match completion.body() {
            Ok(body) => {
                let body: Value = serde_json::from_str(&body).unwrap();
                let message = &body["choices"][0]["message"];
                prop_assert_eq!(message["content"].as_str().unwrap_or_default(), told.text);
                prop_assert_eq!(message["reasoning_content"].as_str().unwrap_or_default(), told.reasoning);
                prop_assert_eq!(message["tool_calls"].as_array().map_or(0, Vec::len), told.calls.len());
                prop_assert_eq!(body["choices"][0]["finish_reason"].as_str().map(str::to_owned), told.finish);
                prop_assert_eq!(body.get("usage"), told.usage.as_ref());
            }
            Err(why) => {
                let said = told.error.as_ref().and_then(|error| error["message"].as_str()).unwrap_or_default();
                prop_assert!(said.ends_with(&why.message), "{} / {}", said, why.message);
            }
        }
    }

    #[test]
    fn escaped_text_is_the_same_as_its_event(texts in vec("\\PC{0,8}", 0..8)) {
        let (mut plain, mut spliced) = (Vec::new(), Vec::new());
        let (mut one, mut other) = (Chunks::new(&head(), false, false), Chunks::new(&head(), false, false));
        for delta in texts {
            let json = serde_json::to_string(&delta).unwrap();
            spliced_push(&mut other, &json[1..json.len() - 1], &mut spliced);
            one.push(&Event::Other(&EventBody::TextDelta { delta }), &mut plain);
        }
        prop_assert_eq!(plain, spliced);
    }
}

fn spliced_push(chunks: &mut Chunks, json: &str, out: &mut Vec<u8>) {
    chunks.push(&Event::Text(json), out);
}
