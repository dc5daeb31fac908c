use everturn_wire::{ServerMessage, StepId};

use super::{join::MAX_JOINED, *};

fn frames(deltas: &[&str]) -> Vec<Frame> {
    let mut start = Cursor(7);
    let mut frames = Vec::new();
    for delta in deltas {
        let body = EventBody::TextDelta { delta: (*delta).into() };
        let frame = Frame::new(start, &"c".into(), Some(&"t".into()), body);
        start = frame.end();
        frames.push(frame);
    }
    frames
}

fn text(frame: &Frame) -> String {
    let event: AgentEvent = serde_json::from_slice(&frame.event()).unwrap();
    event.body.delta().unwrap().to_owned()
}

#[test]
fn the_bytes_are_the_wire_types() {
    let frame = &frames(&["a\"\\\n\u{2028}ü"])[0];
    let event: AgentEvent = serde_json::from_slice(&frame.event()).unwrap();
    let message: ServerMessage = serde_json::from_slice(&frame.chat_delta()).unwrap();
    assert_eq!(message, ServerMessage::ChatDelta { event, cursor: Some(frame.end().to_string()) });
}

#[test]
fn text_is_serialized_as_any_other_event() {
    for reasoning in [false, true] {
        for delta in ["", "word ", "a\"\\\n\u{7f}\u{1}\u{2028}ü\u{1F600}"] {
            let delta = delta.to_owned();
            let body = match reasoning {
                true => EventBody::ReasoningDelta { delta },
                false => EventBody::TextDelta { delta },
            };
            for turn_id in [None, Some("t\n".into())] {
                let frame = Frame::new(Cursor(7), &"c\"".into(), turn_id.as_ref(), body.clone());
                let event = AgentEvent { body: body.clone(), conversation_id: "c\"".into(), turn_id };
                assert_eq!(frame.event(), serde_json::to_vec(&event).unwrap());
                assert_eq!(frame.delta, delta_at(&frame.event(), reasoning));
            }
        }
    }
}

#[test]
fn a_caller_is_told_its_own_name_of_a_conversation() {
    let tricky = r#"said ,"conversationId":"c@ann""#;
    // Any JSON, which repeats the whole field.
    let input = serde_json::from_str(r#"{"a":1,"conversationId":"c@ann","b":2}"#).unwrap();
    let call = EventBody::ToolCall {
        step_id: StepId::new(&"t".into(), 0),
        tool_call_id: "call".to_owned(),
        tool_name: "tool".to_owned(),
        input,
        again: None,
    };
    let (mut id, mut all) = (LocalId::of(&"c@ann".into()), Vec::new());
    let long = EventBody::TextDelta { delta: tricky.repeat(100) };
    for body in [EventBody::TextDelta { delta: tricky.to_owned() }, EventBody::TurnSealed, long, call] {
        for turn_id in [None, Some("t".into())] {
            let [full, local] =
                ["c@ann", "c"].map(|id| Frame::new(Cursor(7), &id.into(), turn_id.as_ref(), body.clone()));
            // One that is over at once, and one that is kept.
            drop(full.clone().under(&mut id));
            all.push((full.under(&mut id), local));
        }
    }
    for (told, local) in all {
        assert_eq!((told.chat_delta(), told.delta), (local.chat_delta(), local.delta));
        assert_eq!(told.ends_turn(), local.ends_turn());
    }
}

#[test]
fn merged_deltas_are_one_event_with_all_the_text() {
    let merged = Frame::merge(&frames(&["a\"", "\\", "", "ü\n", "end"]));
    assert_eq!(merged.len(), 1);
    assert_eq!(text(&merged[0]), "a\"\\ü\nend");
    assert_eq!(text(&Frame::merge(&[merged[0].clone(), merged[0].clone()])[0]), "a\"\\ü\nend");
}

#[test]
fn however_much_is_merged_no_event_is_huge() {
    let merged = Frame::merge(&frames(&["word "; 100_000]));
    assert!(merged.iter().all(|frame| frame.bytes.len() <= MAX_JOINED as usize + ENVELOPE));
    assert_eq!(merged.iter().map(text).collect::<String>(), "word ".repeat(100_000));
    assert_eq!(Frame::merge(&merged).len(), merged.len());
}

#[test]
fn what_is_not_a_delta_parts_the_runs() {
    let mut all = frames(&["a", "b"]);
    all.insert(
        1,
        Frame::new(
            all[0].end(),
            &"c".into(),
            None,
            EventBody::TurnStart { retry_of: None, message_seq: None, supersedes: None },
        ),
    );
    assert_eq!(Frame::merge(&all).len(), 3);
}

#[test]
fn every_place_inside_a_text_has_its_rest() {
    let whole = "aü\"€b";
    let frame = &Frame::merge(&frames(&["aü", "\"€b"]))[0];
    for at in 0..whole.len() {
        let rest = frame.rest(Cursor(frame.start().0 + at as u64));
        assert_eq!(text(&rest), &whole[whole.floor_char_boundary(at)..]);
        assert_eq!(rest.end(), frame.end());
    }
}

#[test]
fn a_stored_event_comes_back_the_same() {
    for frame in Frame::merge(&frames(&["a", "b"])) {
        let back = Frame::stored(&frame.to_stored());
        assert_eq!((back.chat_delta(), back.delta), (frame.chat_delta(), frame.delta));
    }
}
