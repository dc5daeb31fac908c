//! Streams as the API actually sends them.

use std::borrow::Cow;

use everturn_kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::{Echo, Usage, Value};
use serde_json::json;

use super::*;

fn reader(limit: usize) -> AnthropicReader {
    AnthropicReader::new(Answer::new("toolu_s".into(), limit), "anthropic host".into())
}

fn read(payloads: &[Value]) -> (Vec<StreamEvent>, Result<(), Flaw>) {
    let mut reader = reader(1 << 20);
    let mut facts = Facts::new();
    for payload in payloads {
        let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Owned(payload.to_string()) };
        match reader.event(&event, &mut facts) {
            Ok(Reading::More) => {}
            Ok(Reading::Complete) => return (facts.into(), Ok(())),
            Err(flaw) => return (facts.into(), Err(flaw)),
        }
    }
    let end = reader.end(&mut facts);
    (facts.into(), end)
}

/// Returns the events of a complete answer.
fn facts(payloads: &[Value]) -> Vec<StreamEvent> {
    let (facts, end) = read(payloads);
    assert_eq!(end, Ok(()), "{facts:?}");
    facts
}

fn start(index: u64, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

fn delta(index: u64, delta: &Value) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": delta})
}

fn text(text: &str) -> Value {
    delta(0, &json!({"type": "text_delta", "text": text}))
}

fn echo(data: Value) -> StreamEvent {
    StreamEvent::Echo(Echo { origin: "anthropic host".into(), data })
}

fn closing(reason: &str) -> [Value; 2] {
    [json!({"type": "message_delta", "delta": {"stop_reason": reason}}), json!({"type": "message_stop"})]
}

fn with_closing(payloads: &[Value], reason: &str) -> Vec<Value> {
    [payloads, &closing(reason)].concat()
}

#[test]
fn a_complete_answer() {
    let payloads = [
        json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 5, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2, "output_tokens": 1}}}),
        json!({"type": "ping"}),
        start(0, &json!({"type": "thinking", "thinking": "", "signature": ""})),
        delta(0, &json!({"type": "thinking_delta", "thinking": "hm"})),
        delta(0, &json!({"type": "signature_delta", "signature": "xyz"})),
        json!({"type": "content_block_stop", "index": 0}),
        start(1, &json!({"type": "redacted_thinking", "data": "abc"})),
        start(2, &json!({"type": "text", "text": ""})),
        delta(2, &json!({"type": "text_delta", "text": "a"})),
        delta(2, &json!({"type": "citations_delta", "citation": {}})),
        start(3, &json!({"type": "tool_use", "id": "t", "name": "f", "input": {}})),
        delta(3, &json!({"type": "input_json_delta", "partial_json": ""})),
        delta(3, &json!({"type": "input_json_delta", "partial_json": "{\"x\""})),
        delta(3, &json!({"type": "input_json_delta", "partial_json": ":1}"})),
        json!({"type": "something_new"}),
        json!({"type": "message_delta", "delta": {"stop_reason": "tool_use", "stop_sequence": null}, "usage": {"output_tokens": 9}}),
        json!({"type": "message_stop"}),
    ];
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 9,
        cache_read_tokens: Some(3),
        cache_write_tokens: Some(2),
        reasoning_tokens: None,
    };
    let call = ToolCall {
        id: "t".into(),
        name: "f".into(),
        arguments: Arguments::Parsed(json!({"x": 1})),
        echo: None,
    };
    let expected = [
        StreamEvent::Reasoning("hm".into()),
        echo(json!({"type": "thinking", "signature": "xyz"})),
        echo(json!({"type": "redacted_thinking", "data": "abc"})),
        StreamEvent::Text("a".into()),
        StreamEvent::ToolCall(call),
        StreamEvent::Usage(usage),
        StreamEvent::Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(facts(&payloads), expected);
}

#[test]
fn hidden_and_unstreamed_thinking_is_returned_too() {
    let omitted = start(0, &json!({"type": "thinking", "thinking": "", "signature": ""}));
    let signature = delta(0, &json!({"type": "signature_delta", "signature": "one"}));
    let whole = start(1, &json!({"type": "thinking", "thinking": "hm", "signature": "two"}));
    let read = facts(&with_closing(&[omitted, signature, whole, text("a")], "end_turn"));
    let expected = [
        echo(json!({"type": "thinking", "signature": "one"})),
        StreamEvent::Reasoning("hm".into()),
        echo(json!({"type": "thinking", "signature": "two"})),
        StreamEvent::Text("a".into()),
        StreamEvent::Finished(FinishReason::Stop),
    ];
    assert_eq!(read, expected);
}

#[test]
fn an_echo_alone_is_no_answer_and_counts_towards_its_limit() {
    let hidden = start(0, &json!({"type": "redacted_thinking", "data": "abc"}));
    let (_, end) = read(&with_closing(std::slice::from_ref(&hidden), "end_turn"));
    assert!(matches!(end, Err(Flaw::Payload(_))), "{end:?}");
    let mut facts = Facts::new();
    let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Owned(hidden.to_string()) };
    assert!(matches!(reader(40).event(&event, &mut facts), Err(Flaw::Excess(_))));
    assert_eq!(facts, []);
}

#[test]
fn stop_reasons() {
    for (reason, expected) in [
        ("end_turn", FinishReason::Stop),
        ("stop_sequence", FinishReason::Stop),
        ("max_tokens", FinishReason::Length),
        ("model_context_window_exceeded", FinishReason::Length),
        ("refusal", FinishReason::ContentFilter),
        ("pause_turn", FinishReason::Other("pause_turn".into())),
    ] {
        let read = facts(&with_closing(&[text("a")], reason));
        assert_eq!(read, [StreamEvent::Text("a".into()), StreamEvent::Finished(expected)]);
    }
}

#[test]
fn a_tool_without_arguments_has_none_unless_they_were_cut_off() {
    let tool = start(0, &json!({"type": "tool_use", "id": "t", "name": "f", "input": {}}));
    let arguments = |reason| match facts(&with_closing(std::slice::from_ref(&tool), reason)).remove(0) {
        StreamEvent::ToolCall(call) => call.arguments,
        other => panic!("{other:?}"),
    };
    assert_eq!(arguments("tool_use"), Arguments::Parsed(json!({})));
    assert!(matches!(arguments("max_tokens"), Arguments::Malformed { .. }));
}

#[test]
fn incomplete_arguments_in_a_complete_answer_are_malformed() {
    let tool = start(0, &json!({"type": "tool_use", "id": "t", "name": "f", "input": {}}));
    let piece = delta(0, &json!({"type": "input_json_delta", "partial_json": "{\"path\": \"/tm"}));
    let read = facts(&with_closing(&[tool, piece], "tool_use"));
    let [StreamEvent::ToolCall(call), StreamEvent::Finished(FinishReason::ToolCalls)] = &read[..] else {
        panic!("{read:?}")
    };
    let Arguments::Malformed { raw, reason } = &call.arguments else { panic!("{call:?}") };
    assert_eq!(raw, "{\"path\": \"/tm");
    assert!(reason.contains("not valid JSON"), "{reason}");
}

#[test]
fn arguments_may_arrive_complete_and_unknown_tools_are_ignored() {
    let whole = start(0, &json!({"type": "tool_use", "id": "t", "name": "f", "input": {"x": 1}}));
    let foreign = start(1, &json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}));
    let query = delta(1, &json!({"type": "input_json_delta", "partial_json": "{\"query\":1}"}));
    let read = facts(&with_closing(&[whole, foreign, query], "tool_use"));
    let call = ToolCall {
        id: "t".into(),
        name: "f".into(),
        arguments: Arguments::Parsed(json!({"x": 1})),
        echo: None,
    };
    assert_eq!(read, [StreamEvent::ToolCall(call), StreamEvent::Finished(FinishReason::ToolCalls)]);
}

#[test]
fn an_unknown_tool_does_not_hide_what_follows_it() {
    let foreign = start(0, &json!({"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}));
    let opened = start(0, &json!({"type": "text", "text": ""}));
    let read = facts(&with_closing(&[foreign, opened, text("found")], "end_turn"));
    assert_eq!(read[0], StreamEvent::Text("found".into()), "though all have one index");
}

#[test]
fn an_error_is_recognized_anywhere() {
    let [stop, _] = closing("end_turn");
    for error in [
        json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
        json!({"error": {"message": "a proxy's"}}),
        json!({"type": "content_block_delta", "index": 0}),
        json!("text"),
    ] {
        for payloads in [vec![], vec![text("a")], vec![text("a"), stop.clone()]] {
            let (told, end) = read(&[payloads, vec![error.clone()]].concat());
            assert_eq!(end, Err(Flaw::Payload(error.to_string())));
            assert!(told.len() <= 1, "{told:?}");
        }
    }
    let mut reader = reader(1);
    let named = SseEvent { name: Cow::Borrowed("error"), data: Cow::Borrowed("{\"type\":\"ping\"}") };
    assert!(matches!(reader.event(&named, &mut Facts::new()), Err(Flaw::Payload(_))));
}

#[test]
fn an_answer_without_finish_reason_or_terminator_is_truncated() {
    let [reason, stop] = closing("end_turn");
    for payloads in [vec![], vec![text("a")], vec![text("a"), reason], vec![text("a"), stop]] {
        assert!(matches!(read(&payloads).1, Err(Flaw::Truncated(_))), "{payloads:?}");
    }
}

#[test]
fn an_empty_answer_is_not_an_answer() {
    let [reason, stop] = closing("end_turn");
    assert_eq!(read(&[reason.clone(), stop]).1, Err(Flaw::Payload(format!("data: {reason}\n\n"))));
    assert_eq!(facts(&closing("refusal")), [StreamEvent::Finished(FinishReason::ContentFilter)]);
}

#[test]
fn a_call_that_something_follows_is_announced_in_its_place() {
    let block = |index: u64, block: Value| {
        [start(index, &block), json!({"type": "content_block_stop", "index": index})]
    };
    let call = |id: &str| json!({"type": "tool_use", "id": id, "name": "f", "input": {"x": 1}});
    let thought = |text: &str| json!({"type": "thinking", "thinking": text, "signature": text});
    let blocks = [thought("1"), call("a"), call("b"), thought("2"), call("c")];
    let payloads: Vec<Value> = (0..).zip(blocks).flat_map(|(index, content)| block(index, content)).collect();
    let called = |id: &str| {
        let arguments = Arguments::Parsed(json!({"x": 1}));
        StreamEvent::ToolCall(ToolCall { id: id.into(), name: "f".into(), arguments, echo: None })
    };
    let thinks = |text: &str| {
        let signed = json!({"type": "thinking", "signature": text});
        vec![StreamEvent::Reasoning(text.into()), echo(signed)]
    };
    let here = |id: &str| StreamEvent::CallHere(id.into());
    let expected = [
        thinks("1"),
        vec![here("a"), here("b")],
        thinks("2"),
        vec![called("a"), called("b"), called("c"), StreamEvent::Finished(FinishReason::ToolCalls)],
    ];
    assert_eq!(facts(&with_closing(&payloads, "tool_use")), expected.concat());
}
