//! Arbitrary bytes fed to every reader.

use std::collections::HashSet;

use everturn_kernel::{Arguments, ToolCall};
use proptest::prelude::*;

use super::*;

const LIMITS: AnswerLimits = AnswerLimits { event: 2000, answer: 2000 };

/// Typical pieces of streams of these APIs, so that random ones reach beyond the first frame.
const PIECES: &[&str] = &[
    "data: ",
    "event: error\n",
    "\n",
    "\n\n",
    "\r\n\r\n",
    ": comment\n",
    "{}",
    "[]",
    "null",
    "[DONE]",
    "data: [DONE]\n\n",
    r#"data: {"choices":[{"delta":{"content":"a"}}]}"#,
    r#"data: {"choices":[{"delta":{"reasoning_content":"b"}}]}"#,
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{"}}]}}]}"#,
    r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"}"}}]}}]}"#,
    r#"data: {"choices":[{"delta":{"tool_calls":[{"id":"c","function":{"name":"g"}}]}}]}"#,
    r#"data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}"#,
    r#"data: {"choices":[{"delta":{},"finish_reason":"stop"}]}"#,
    r#"data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}"#,
    r#"data: {"error":{"message":"no"}}"#,
    r#"data: {"type":"message_start","message":{"usage":{"input_tokens":1}}}"#,
    r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}"#,
    r#"data: {"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"c","name":"f","input":{}}}"#,
    r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"b"}}"#,
    r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":"}}"#,
    r#"data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":3}}"#,
    r#"data: {"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#,
    r#"data: {"type":"message_stop"}"#,
    r#"data: {"type":"error","error":{"message":"no"}}"#,
    r#"data: {"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"m","content":[]}}"#,
    r#"data: {"type":"response.output_text.delta","item_id":"m","output_index":0,"content_index":0,"delta":"a"}"#,
    r#"data: {"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":"ab"}"#,
    r#"data: {"type":"response.reasoning_summary_text.delta","item_id":"r","output_index":1,"delta":"b"}"#,
    r#"data: {"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":""}}"#,
    r#"data: {"type":"response.function_call_arguments.delta","item_id":"i","output_index":2,"delta":"{\"a\":"}"#,
    r#"data: {"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"i","call_id":"c","name":"f","arguments":"{}"}}"#,
    r#"data: {"type":"response.completed","response":{"status":"completed","usage":{"input_tokens":1,"output_tokens":2}}}"#,
    r#"data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#,
    r#"data: {"type":"response.failed","response":{"error":{"message":"no"}}}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"text":"a"}]}}]}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"text":"b","thought":true,"thoughtSignature":"s"}]}}]}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}},{"functionCall":{"id":"c","name":"f"}}]}}]}"#,
    r#"data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}"#,
    r#"data: {"candidates":[{"finishReason":"MAX_TOKENS"}]}"#,
    r#"data: {"promptFeedback":{"blockReason":"SAFETY"}}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"text":"a"},{"text":"b","thought":true,"thoughtSignature":"s"}]}}]}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{"a":1}}}]},"index":0}]}"#,
    r#"data: {"candidates":[{"content":{"parts":[{"functionCall":{"id":"c","name":"f"},"thoughtSignature":"s"}]}}]}"#,
    r#"data: {"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":2}}"#,
    r#"data: {"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}"#,
    r#"data: {"promptFeedback":{"blockReason":"SAFETY"}}"#,
    "{\n  \"error\": {\n    \"message\": \"no\"\n  }\n}\n",
    "\u{FEFF}",
    "é",
    "\"",
    "{",
];

fn stream() -> impl Strategy<Value = Vec<u8>> {
    let piece = (prop::sample::select(PIECES), prop::sample::select(vec!["", "\n\n", "\n\n", "\n\n"]));
    let text = prop::collection::vec(piece, 0..20)
        .prop_map(|pieces| pieces.into_iter().flat_map(|(piece, end)| [piece, end]).collect::<String>());
    (text, prop::option::of((any::<prop::sample::Index>(), any::<u8>()))).prop_map(|(text, change)| {
        let mut bytes = text.into_bytes();
        if let Some((at, byte)) = change.filter(|_| !bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        bytes
    })
}

fn said(fact: &StreamEvent) -> usize {
    match fact {
        StreamEvent::Text(text) | StreamEvent::Reasoning(text) => text.len(),
        _ => 0,
    }
}

fn calls(facts: &[StreamEvent]) -> Vec<&ToolCall> {
    let calls = facts.iter().filter_map(|fact| match fact {
        StreamEvent::ToolCall(call) => Some(call),
        _ => None,
    });
    calls.collect()
}

proptest! {
    #[test]
    fn every_reader_yields_the_same_however_its_input_is_split(bytes in stream(), size in 1_usize..40, eager: bool) {
        for dialect in Dialect::ALL {
            let whole = replay(*dialect, LIMITS, eager, [bytes.as_slice()]);
            prop_assert_eq!(&replay(*dialect, LIMITS, eager, bytes.chunks(size)), &whole, "{:?}", dialect);
        }
    }

    #[test]
    fn only_a_complete_answer_has_calls_and_an_end(bytes in stream()) {
        for dialect in Dialect::ALL {
            let (facts, ending) = replay(*dialect, LIMITS, false, [bytes.as_slice()]);
            let ends = facts.iter().filter(|fact| matches!(fact, StreamEvent::Finished(_))).count();
            let is_last = matches!(facts.last(), Some(StreamEvent::Finished(_)));
            prop_assert_eq!((ends, is_last), if ending == Ending::Complete { (1, true) } else { (0, false) });
            let calls = calls(&facts);
            let ids: HashSet<_> = calls.iter().map(|call| &call.id).collect();
            prop_assert!(ids.len() == calls.len() && (ids.is_empty() || is_last), "{:?}", facts);
            prop_assert!(calls.iter().all(|call| !call.id.is_empty() && !call.name.is_empty()), "{:?}", facts);
            prop_assert!(facts.iter().map(said).sum::<usize>() <= LIMITS.answer);
        }
    }

    #[test]
    fn early_calls_equal_the_final_calls(bytes in stream()) {
        for dialect in Dialect::ALL {
            let (facts, ending) = replay(*dialect, LIMITS, true, [bytes.as_slice()]);
            let early = calls(&facts);
            let ids: HashSet<_> = early.iter().map(|call| &call.id).collect();
            prop_assert_eq!(ids.len(), early.len());
            let is_whole = |call: &ToolCall| matches!(call.arguments, Arguments::Parsed(_));
            prop_assert!(ending == Ending::Complete || early.iter().all(|call| is_whole(call)), "{:?}", facts);
            if ending == Ending::Complete {
                let (late, end) = replay(*dialect, LIMITS, false, [bytes.as_slice()]);
                prop_assert_eq!(end, ending);
                let said = |calls: Vec<&ToolCall>| {
                    let mut said: Vec<_> =
                        calls.iter().map(|call| format!("{} {:?}", call.name, call.arguments)).collect();
                    said.sort();
                    said
                };
                prop_assert_eq!(said(early), said(calls(&late)));
            }
        }
    }
}

#[test]
fn an_event_with_too_many_values_is_not_parsed() {
    let many = |value: &str| vec![value; crate::bulk::MOST_VALUES].join(",");
    let values = [
        format!(r#"{{"choices":[{}]}}"#, many("{}")),
        format!(r#"{{"candidates":[{}]}}"#, many("{}")),
        format!(r#"{{"type":"response.completed","response":{{"output":[{}]}}}}"#, many("0")),
        format!(r#"{{"type":"ping","more":[{}]}}"#, many("0")),
    ];
    for dialect in Dialect::ALL {
        for value in &values {
            let event = format!("data: {value}\n\n");
            let (facts, ending) = replay(*dialect, AnswerLimits::default(), false, [event.as_bytes()]);
            let Ending::Flawed(why) = ending else { panic!("{dialect:?} {ending:?}") };
            assert!(facts.is_empty() && why.contains("JSON values"), "{dialect:?} {why:.200}");
        }
    }
}
