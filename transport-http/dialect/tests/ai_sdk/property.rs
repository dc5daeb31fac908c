//! Whatever the order of events, the output can be read by a strict client of its version.

use everturn_dialect::{
    Event, Translator as _,
    ai_sdk::{Chunks, Version},
};
use everturn_wire::{ApprovalRequest, EventBody, Value};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::json;

use super::{
    VERSIONS,
    any_event::any_event,
    events::{events, text_of},
    reader::read,
};

/// How the stream ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Nothing,
    WaitsForPeople,
    Failed,
}

proptest! {
    #[test]
    fn a_strict_client_reads_every_stream(
        written in vec(any_event(), 0..24),
        version in select(VERSIONS.to_vec()),
        is_continued: bool,
        silences in vec(any::<bool>(), 24),
        end in select(vec![End::Nothing, End::WaitsForPeople, End::Failed]),
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
            // Every prefix is readable.
            read(str::from_utf8(&out).unwrap(), version, &had).map_err(TestCaseError::fail)?;
        }
        let is_sealed = events.iter().any(|event| matches!(event, EventBody::TurnSealed));
        prop_assert_eq!(chunks.is_over(), is_sealed);
        match end {
            End::Nothing => {}
            End::WaitsForPeople => chunks.wait_for_people(&mut out),
            End::Failed => chunks.fail("no\n", &mut out),
        }
        let told = read(str::from_utf8(&out).unwrap(), version, &had).map_err(TestCaseError::fail)?;
        prop_assert_eq!(told.is_done, chunks.is_over());
        let ends = [told.finish.is_some(), told.error.is_some(), told.is_aborted];
        prop_assert!(ends.iter().filter(|ended| **ended).count() <= 1);
        prop_assert!(!told.is_done || ends.contains(&true));
        if version == Version::Seven && !is_continued {
            // No withdrawn text is still shown.
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
