//! Whatever the order of events, the output can be read by a strict client of its version.

use everturn_dialect::{
    Event, Translator as _,
    ag_ui::{Kept, Run},
};
use everturn_wire::{ApprovalRequest, EventBody, Value};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::{
    any_event::any_event,
    events::{events, text_of},
    head,
    reader::read,
};

const HAD: &str =
    r#"[{"id":"u","role":"user","content":"hi"},{"id":"old","role":"reasoning","content":"Hm"}]"#;

/// How the run ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Nothing,
    WaitsForPeople,
    Failed,
    Finished,
}

/// How the run begins.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Start {
    New,
    Continued,
    Connected,
}

proptest! {
    #[test]
    fn a_strict_client_reads_every_run(
        written in vec(any_event(), 0..24),
        is_one: bool,
        start in select(vec![Start::New, Start::Continued, Start::Connected]),
        silences in vec(any::<bool>(), 24),
        end in select(vec![End::Nothing, End::WaitsForPeople, End::Failed, End::Finished]),
    ) {
        let events = events(Value::Array(written));
        let pending: ApprovalRequest = serde_json::from_value(
            json!({ "turnId": "t", "stepId": "t#0", "toolCallId": "a", "toolName": "n", "input": {} })
        ).unwrap();
        let mut out = Vec::new();
        let mut run = match start {
            Start::New => Run::new(head(is_one), &"t".into(), Kept::of(HAD), &mut out),
            Start::Continued => Run::continued(head(is_one), &"t".into(), &[pending], Kept::of(HAD), &mut out),
            Start::Connected => Run::connected(head(is_one), &"t".into(), &serde_json::from_str(HAD).unwrap(), &mut out),
        };
        for (event, is_silent) in events.iter().zip(silences) {
            run.push(&Event::Other(event), &mut out);
            if is_silent && !run.is_over() {
                run.keep_alive(&mut out);
            }
            // Every prefix is readable.
            read(str::from_utf8(&out).unwrap(), is_one, HAD).map_err(TestCaseError::fail)?;
        }
        let is_sealed = events.iter().any(|event| matches!(event, EventBody::TurnSealed));
        prop_assert_eq!(run.is_over(), is_sealed);
        match end {
            End::Nothing => {}
            End::WaitsForPeople => run.wait_for_people(&mut out),
            End::Failed => run.fail("no\n", &mut out),
            End::Finished => run.finish(&mut out),
        }
        let told = read(str::from_utf8(&out).unwrap(), is_one, HAD).map_err(TestCaseError::fail)?;
        prop_assert!(!run.is_over() || told.is_finished != told.error.is_some());
        prop_assert_eq!(told.text("assistant"), text_of(&events));
        // Earlier messages remain.
        prop_assert!(told.messages.iter().any(|(id, message)| id == "u" && message["content"] == "hi"));
        prop_assert!(told.messages.iter().any(|(id, message)| id == "old" && message["content"] == "Hm"));
    }

    #[test]
    fn escaped_text_is_the_same_as_its_event(texts in vec("\\PC{0,8}", 0..8)) {
        let (mut plain, mut spliced) = (Vec::new(), Vec::new());
        let mut one = Run::new(head(true), &"t".into(), Kept::none(), &mut plain);
        let mut other = Run::new(head(true), &"t".into(), Kept::none(), &mut spliced);
        for delta in texts {
            let json = serde_json::to_string(&delta).unwrap();
            other.push(&Event::Text(&json[1..json.len() - 1]), &mut spliced);
            one.push(&Event::Other(&EventBody::TextDelta { delta }), &mut plain);
        }
        prop_assert_eq!(plain, spliced);
    }
}
