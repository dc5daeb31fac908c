//! Every API's reader: the same events however the bytes are split, calls only in a complete answer, and within its
//! limits.
//!
//! The first byte of the input is the size of the pieces; all readers read the rest.

#![no_main]

use std::collections::HashSet;

use everturn_kernel::{Arguments, StreamEvent, ToolCall};
use everturn_provider::{Dialect, Ending, AnswerLimits, replay};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const LIMITS: AnswerLimits = AnswerLimits { event: 4096, answer: 4096 };

fuzz_target!(|input: &[u8]| {
    let [size, bytes @ ..] = input else { return };
    for (dialect, eager) in Dialect::ALL.iter().flat_map(|dialect| [(dialect, false), (dialect, true)]) {
        let (facts, ending) = replay(*dialect, LIMITS, eager, [bytes]);
        let pieces = bytes.chunks(usize::from(*size).max(1));
        assert_eq!(
            replay(*dialect, LIMITS, eager, pieces),
            (facts.clone(), ending.clone()),
            "{dialect:?} in pieces"
        );
        check(&facts, &ending, eager);
    }
});

fn check(facts: &[StreamEvent], ending: &Ending, eager: bool) {
    let is_end = |fact: &&StreamEvent| matches!(fact, StreamEvent::Finished(_) | StreamEvent::Failed(_));
    let is_complete = *ending == Ending::Complete;
    assert_eq!(facts.iter().filter(is_end).count(), usize::from(is_complete), "{facts:?} {ending:?}");
    assert_eq!(facts.last().as_ref().is_some_and(is_end), is_complete, "{facts:?} {ending:?}");
    let (mut ids, mut said) = (HashSet::new(), 0);
    for fact in facts {
        match fact {
            StreamEvent::Text(text) | StreamEvent::Reasoning(text) => {
                assert!(!text.is_empty(), "{facts:?}");
                said += text.len();
            }
            StreamEvent::ToolCall(call) => {
                assert!((is_complete || eager) && ids.insert(&call.id), "{facts:?}");
                check_call(call);
            }
            _ => {}
        }
    }
    assert!(said <= LIMITS.answer, "{said} bytes of text");
}

fn check_call(call: &ToolCall) {
    assert!(!call.id.is_empty() && !call.name.is_empty(), "{call:?}");
    if let Arguments::Malformed { raw, .. } = &call.arguments {
        let parsed = serde_json::from_str::<Value>(raw);
        assert!(!parsed.is_ok_and(|value| value.is_object()), "{call:?} is well formed");
    }
}
