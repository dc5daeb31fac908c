//! Whatever comes in whatever order, what goes out is read by a strict client of its version.

use everturn_dialect::{
    Event, Translator as _,
    ai_sdk::{Chunks, Version},
};
use everturn_wire::{ApprovalRequest, EventBody, Value};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::{VERSIONS, events, reader::read};

/// One event of each kind that there is.
pub(crate) fn any_event() -> impl Strategy<Value = Value> {
    let word = "[a-z \"\\\\\n\r\u{2028}é\u{0}]{0,6}";
    let of_text = (select(vec!["text-delta", "reasoning-delta"]), word)
        .prop_map(|(kind, delta)| json!({ "type": kind, "delta": delta }));
    let reasons =
        vec!["stop", "tool-calls", "length", "content-filter", "max-steps", "error", "aborted", "end_turn"];
    let done = (select(reasons), any::<bool>()).prop_map(|(reason, counts)| {
        let mut done = json!({ "type": "done", "reason": reason });
        if counts {
            done["usage"] = json!({ "inputTokens": 7, "outputTokens": u64::MAX });
        }
        done
    });
    let kinds = vec![
        "step-complete",
        "step-rewound",
        "tool-call",
        "tool-call",
        "tool-result",
        "tool-output",
        "approval-requested",
        "approval-resolved",
        "review-started",
        "compaction-started",
    ];
    let of_step = (select(kinds), 0..2_u32, select(vec!["a", "b\n"]), any::<bool>(), any::<bool>()).prop_map(
        |(kind, step, call, is_error, denied)| {
            let decisions = match denied {
                true => json!([{ "by": "person", "verdict": "denied", "reason": "no" }]),
                false => json!([]),
            };
            json!({
                "type": kind, "stepId": format!("t#{step}"), "toolCallId": call, "toolName": "n\nn", "input": null,
                "content": "x", "isError": is_error, "data": "out", "stream": "stdout", "reason": "why",
                "verdict": if denied { "denied" } else { "allowed" }, "decisions": decisions, "cause": "overflow",
            })
        },
    );
    prop_oneof![
        6 => of_text,
        1 => done,
        8 => of_step,
        1 => Just(json!({ "type": "provider-retry", "attempt": 0, "delayMs": 3000, "message": "HTTP 429: {\n\"error\": \"slow\n\ndown\"}" })),
        1 => Just(json!({ "type": "retry-ended", "attempts": 1, "outcome": "recovered" })),
        1 => Just(json!({ "type": "provider-silent", "stepId": "t#0", "silentMs": 5, "alive": false })),
        1 => Just(json!({ "type": "error", "message": "no\r\n\r\ndata: {}", "category": "overloaded" })),
        1 => Just(json!({ "type": "turn-sealed" })),
        1 => Just(json!({ "type": "final-report", "success": true, "report": { "a": "b\n" } })),
        1 => Just(json!({ "type": "turn-start" })),
        1 => Just(json!({ "type": "steering", "text": "and\n" })),
        1 => Just(json!({ "type": "status", "status": "queued" })),
        1 => Just(json!({ "type": "usage", "usage": { "inputTokens": 1, "outputTokens": 1 } })),
    ]
}

/// The text that was not taken back.
fn text_of(events: &[EventBody]) -> String {
    let (mut text, mut step) = (String::new(), 0);
    for event in events {
        match event {
            EventBody::TextDelta { delta } => text.push_str(delta),
            EventBody::FinalReport(report) if text.is_empty() => {
                text = report.report.as_ref().unwrap().to_string();
            }
            EventBody::StepRewound { .. } => text.truncate(step),
            EventBody::StepComplete { .. } => step = text.len(),
            EventBody::Error(_) | EventBody::Done { .. } | EventBody::TurnSealed => break,
            _ => {}
        }
    }
    text
}

/// How the stream of a test ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Nothing,
    HandedOver,
    Failed,
}

proptest! {
    #[test]
    fn a_strict_client_reads_every_stream(
        written in vec(any_event(), 0..24),
        version in select(VERSIONS.to_vec()),
        is_continued: bool,
        silences in vec(any::<bool>(), 24),
        end in select(vec![End::Nothing, End::HandedOver, End::Failed]),
    ) {
        let events = events(Value::Array(written));
        let pending: ApprovalRequest = serde_json::from_value(
            json!({ "turnId": "t", "stepId": "t#0", "toolCallId": "a", "toolName": "n", "input": {} })
        ).unwrap();
        let mut out = Vec::new();
        let (mut chunks, had) = match is_continued {
            true => (Chunks::continued(version, ["t#0:a".to_owned()], &[pending], &mut out), vec!["t#0:a"]),
            false => (Chunks::new(version, &"c".into(), &"t".into(), &mut out), Vec::new()),
        };
        for (event, is_silent) in events.iter().zip(silences) {
            chunks.push(&Event::Other(event), &mut out);
            if is_silent && !chunks.is_over() {
                chunks.keep_alive(&mut out);
            }
            // However much is there, it can be read so far.
            read(str::from_utf8(&out).unwrap(), version, &had).map_err(TestCaseError::fail)?;
        }
        let is_sealed = events.iter().any(|event| matches!(event, EventBody::TurnSealed));
        prop_assert_eq!(chunks.is_over(), is_sealed);
        match end {
            End::Nothing => {}
            End::HandedOver => chunks.hand_over(&mut out),
            End::Failed => chunks.fail("no\n", &mut out),
        }
        let told = read(str::from_utf8(&out).unwrap(), version, &had).map_err(TestCaseError::fail)?;
        prop_assert_eq!(told.is_done, chunks.is_over());
        let ends = [told.finish.is_some(), told.error.is_some(), told.is_aborted];
        prop_assert!(ends.iter().filter(|ended| **ended).count() <= 1);
        prop_assert!(!told.is_done || ends.contains(&true));
        if version == Version::Seven && !is_continued {
            // Nothing that was taken back is still shown.
            prop_assert_eq!(told.text(), text_of(&events));
            prop_assert_eq!(told.message_id.as_deref(), Some("t"));
        }
    }

    #[test]
    fn escaped_text_is_the_same_as_its_event(texts in vec("\\PC{0,8}", 0..8)) {
        let (mut plain, mut spliced) = (Vec::new(), Vec::new());
        let mut one = Chunks::new(Version::Seven, &"c".into(), &"t".into(), &mut plain);
        let mut other = Chunks::new(Version::Seven, &"c".into(), &"t".into(), &mut spliced);
        for delta in texts {
            let json = serde_json::to_string(&delta).unwrap();
            other.push(&Event::Text(&json[1..json.len() - 1]), &mut spliced);
            one.push(&Event::Other(&EventBody::TextDelta { delta }), &mut plain);
        }
        prop_assert_eq!(plain, spliced);
    }
}
