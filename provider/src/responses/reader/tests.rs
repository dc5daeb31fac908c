//! Streams as servers of this API actually send them.

use std::borrow::Cow;

use everturn_kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::{Echo, Usage, Value};
use serde_json::json;

use super::*;

const ORIGIN: &str = "openai-responses host";

fn read(payloads: &[Value]) -> (Vec<StreamEvent>, Result<(), Flaw>) {
    let mut reader = ResponsesReader::new(Answer::new("call_s".into(), 1 << 20), ORIGIN.into());
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

/// Returns the events of an answer that is complete after these payloads and a terminal event.
fn completed(payloads: &[Value]) -> Vec<StreamEvent> {
    let mut facts = facts(&[payloads, &[end(&json!({"status": "completed"}))]].concat());
    assert!(matches!(facts.pop(), Some(StreamEvent::Finished(_))));
    facts
}

fn added(place: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.added", "output_index": place, "item": item})
}

fn done(place: u64, item: &Value) -> Value {
    json!({"type": "response.output_item.done", "output_index": place, "item": item})
}

fn delta(kind: &str, place: u64, id: &str, delta: &str) -> Value {
    json!({"type": format!("response.{kind}.delta"), "output_index": place, "item_id": id, "delta": delta})
}

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(id: &str, call_id: &str, arguments: &str) -> Value {
    json!({"type": "function_call", "id": id, "call_id": call_id, "name": "f", "arguments": arguments})
}

fn thought(id: &str, encrypted: &str) -> Value {
    json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": encrypted})
}

fn end(response: &Value) -> Value {
    json!({"type": "response.completed", "response": response})
}

fn text(text: &str) -> StreamEvent {
    StreamEvent::Text(text.into())
}

fn reasoning(text: &str) -> StreamEvent {
    StreamEvent::Reasoning(text.into())
}

fn echo(items: Value) -> Echo {
    Echo { origin: ORIGIN.into(), data: items }
}

fn called(id: &str, arguments: Value, echo: Option<Echo>) -> StreamEvent {
    let arguments = Arguments::Parsed(arguments);
    StreamEvent::ToolCall(ToolCall { id: id.into(), name: "f".into(), arguments, echo })
}

#[test]
fn a_complete_answer() {
    let secret = json!({
        "type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}],
        "encrypted_content": "gAAA", "status": "completed",
    });
    let events = [
        json!({"type": "response.created", "response": {"status": "in_progress", "error": null, "output": []}}),
        json!({"type": "response.in_progress", "response": {"status": "in_progress"}}),
        added(0, &thought("rs_1", "gA")),
        json!({"type": "response.reasoning_summary_part.added", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        json!({"type": "response.reasoning_summary_text.delta", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "delta": "hm"}),
        json!({"type": "response.reasoning_summary_text.done", "item_id": "rs_1", "output_index": 0, "summary_index": 0, "text": "hm"}),
        done(0, &secret),
        added(1, &json!({"type": "message", "id": "msg_1", "content": [], "status": "in_progress"})),
        json!({"type": "response.content_part.added", "item_id": "msg_1", "output_index": 1, "content_index": 0, "part": {"type": "output_text", "text": ""}}),
        delta("output_text", 1, "msg_1", "a"),
        delta("output_text", 1, "msg_1", "b"),
        json!({"type": "response.output_text.done", "item_id": "msg_1", "output_index": 1, "content_index": 0, "text": "ab"}),
        done(1, &message("msg_1", "ab")),
        added(2, &call("fc_1", "call_1", "")),
        delta("function_call_arguments", 2, "fc_1", "{\"x\""),
        delta("function_call_arguments", 2, "fc_1", ":1}"),
        json!({"type": "response.function_call_arguments.done", "item_id": "fc_1", "output_index": 2, "arguments": "{\"x\":1}"}),
        done(2, &call("fc_1", "call_1", "{\"x\":1}")),
        json!({"type": "response.something_new", "delta": 7}),
        end(
            &json!({"status": "completed", "error": null, "incomplete_details": null, "output": [secret, message("msg_1", "ab"), call("fc_1", "call_1", "{\"x\":1}")], "usage": {"input_tokens": 10, "input_tokens_details": {"cached_tokens": 3}, "output_tokens": 9, "output_tokens_details": {"reasoning_tokens": 6}}}),
        ),
    ];
    let usage = Usage {
        input_tokens: 10,
        output_tokens: 9,
        cache_read_tokens: Some(3),
        cache_write_tokens: None,
        reasoning_tokens: Some(6),
    };
    let mut returned = secret;
    returned.as_object_mut().unwrap().remove("status");
    let expected = [
        reasoning("hm"),
        StreamEvent::Echo(echo(json!([returned]))),
        text("ab"),
        called("call_1", json!({"x": 1}), None),
        StreamEvent::Usage(usage),
        StreamEvent::Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(facts(&events), expected);
}

#[test]
fn reasons_to_stop() {
    let response = |kind: &str, response: Value| json!({"type": kind, "response": response});
    let incomplete = |reason: &str| json!({"status": "incomplete", "incomplete_details": {"reason": reason}, "error": null});
    for (last, expected) in [
        (end(&json!({"status": "completed"})), FinishReason::Stop),
        (json!({"type": "response.done"}), FinishReason::Stop),
        (response("response.incomplete", incomplete("max_output_tokens")), FinishReason::Length),
        (response("response.completed", incomplete("max_output_tokens")), FinishReason::Length),
        (response("response.incomplete", incomplete("content_filter")), FinishReason::ContentFilter),
        (response("response.incomplete", incomplete("max_tool_calls")), FinishReason::Length),
    ] {
        let read = facts(&[delta("output_text", 0, "m", "a"), last]);
        assert_eq!(read, [text("a"), StreamEvent::Finished(expected)]);
    }
}

#[test]
fn text_is_yielded_once_wherever_it_appears() {
    let whole = json!({"type": "response.output_text.done", "item_id": "m", "output_index": 0, "content_index": 0, "text": "ab"});
    let piece = delta("output_text", 0, "m", "ab");
    let item = done(0, &message("m", "ab"));
    let last = end(&json!({"status": "completed", "output": [message("m", "ab")]}));
    let renamed = end(&json!({"status": "completed", "output": [thought("r", ""), message("other", "ab")]}));
    for events in [
        vec![piece.clone(), whole.clone(), item.clone(), last.clone()],
        vec![added(0, &message("m", "")), piece.clone(), renamed.clone()],
        vec![whole.clone(), item.clone(), last.clone()],
        vec![item.clone(), item.clone(), renamed],
        vec![whole, end(&json!({}))],
        vec![piece, end(&json!({}))],
        vec![last],
    ] {
        assert_eq!(facts(&events), [text("ab"), StreamEvent::Finished(FinishReason::Stop)], "{events:?}");
    }
    // The second of two parts arrives only with the item.
    let item = json!({"type": "message", "id": "m", "content": [{"type": "output_text", "text": "a"}, {"type": "refusal", "refusal": "No."}]});
    assert_eq!(completed(&[delta("output_text", 0, "m", "a"), done(0, &item)]), [text("aNo.")]);
    assert_eq!(completed(&[delta("refusal", 0, "m", "No.")]), [text("No.")]);
}

#[test]
fn two_messages_are_two_paragraphs() {
    let events = [
        delta("output_text", 0, "m", "a"),
        delta("output_text", 1, "n", "b"),
        delta("output_text", 1, "n", "c"),
    ];
    assert_eq!(completed(&events), [text("a\n\nbc")]);
}

#[test]
fn reasoning_in_all_its_forms() {
    let said = delta("output_text", 9, "m", "a");
    let summary = |part: u64, text: &str| {
        let mut event = delta("reasoning_summary_text", 0, "r", text);
        event["summary_index"] = json!(part);
        event
    };
    let parts = [summary(0, "a"), summary(0, "b"), summary(1, "c"), done(0, &thought("r", "")), said.clone()];
    assert_eq!(completed(&parts), [reasoning("ab\n\nc"), text("a")]);
    let full = [
        delta("reasoning_text", 0, "r", "x"),
        summary(0, "short"),
        delta("reasoning_text", 0, "r", "y"),
        said.clone(),
    ];
    assert_eq!(completed(&full), [reasoning("xy"), text("a")], "not its summary as well");
    let content = json!({"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "x"}]});
    assert_eq!(completed(&[done(0, &content), said.clone()]), [reasoning("x"), text("a")], "only as an item");
    let both =
        json!({"type": "reasoning", "summary": [{"text": "s"}, {"text": "t"}], "content": [{"text": "x"}]});
    assert_eq!(completed(&[done(0, &both), said.clone()]), [reasoning("s\n\nt"), text("a")]);
    let last = end(&json!({"output": [content, message("m", "a")]}));
    let stop = StreamEvent::Finished(FinishReason::Stop);
    assert_eq!(facts(&[last]), [reasoning("x"), text("a"), stop], "only at the end");
}

#[test]
fn echoes_are_returned_with_the_output_they_led_to() {
    let kept = |id: &str, content: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": content});
    let events = [
        added(0, &thought("r0", "partial")),
        done(0, &thought("r0", "A")),
        done(0, &thought("r0", "A")),
        added(1, &call("f1", "c1", "")),
        done(2, &thought("r2", "B")),
        delta("function_call_arguments", 1, "f1", "{}"),
        done(1, &call("f1", "c1", "{}")),
        added(3, &call("f3", "c3", "{}")),
        done(3, &call("f3", "c3", "{}")),
        done(4, &thought("r4", "C")),
    ];
    let expected = [
        called("c1", json!({}), Some(echo(json!([kept("r0", "A")])))),
        called("c3", json!({}), Some(echo(json!([kept("r2", "B")])))),
    ];
    assert_eq!(completed(&events), expected, "each once, and none without what follows it");
    let phased = json!({"type": "message", "id": "m", "phase": "commentary", "content": []});
    let events =
        [done(0, &thought("r", "A")), added(1, &phased), delta("output_text", 1, "m", "a"), done(1, &phased)];
    let items = json!([kept("r", "A"), {"type": "message", "phase": "commentary"}]);
    assert_eq!(completed(&events), [StreamEvent::Echo(echo(items)), text("a")]);
    let anonymous = json!({"type": "reasoning", "encrypted_content": "A"});
    let bare = json!([{"type": "reasoning", "summary": [], "encrypted_content": "A"}]);
    assert_eq!(
        completed(&[done(0, &anonymous), delta("output_text", 1, "m", "a")])[0],
        StreamEvent::Echo(echo(bare))
    );
    assert_eq!(completed(&[done(0, &thought("r", "")), delta("output_text", 1, "m", "a")]), [text("a")]);
}

/// Returns the ids and arguments of calls.
fn calls(events: &[Value]) -> Vec<(String, Value)> {
    let call = |fact: StreamEvent| match fact {
        StreamEvent::ToolCall(ToolCall { id, arguments: Arguments::Parsed(value), .. }) => (id, value),
        other => panic!("{other:?}"),
    };
    completed(events).into_iter().map(call).collect()
}

fn piece(place: Option<u64>, id: &str, arguments: &str) -> Value {
    let mut event = delta("function_call_arguments", 0, id, arguments);
    event["output_index"] = json!(place);
    event
}

#[test]
fn pieces_find_their_call() {
    let expected = [("c1".to_owned(), json!({"x": 1})), ("c2".to_owned(), json!({"y": 2}))];
    let interleaved = |places: [Option<u64>; 2], names: [&str; 4]| {
        let mut begun = [added(0, &call("a", "c1", "")), added(0, &call("b", "c2", ""))];
        begun[0]["output_index"] = json!(places[0]);
        begun[1]["output_index"] = json!(places[1]);
        let [first, second] = begun;
        vec![
            first,
            second,
            piece(places[0], names[0], "{\"x\""),
            piece(places[1], names[1], "{\"y\""),
            piece(places[0], names[2], ":1}"),
            piece(places[1], names[3], ":2}"),
        ]
    };
    let plain = ["a", "b", "a", "b"];
    for (places, names, how) in [
        ([Some(0), Some(1)], plain, "as documented"),
        ([None, None], plain, "by id alone, as llama.cpp has it"),
        ([Some(0), Some(0)], plain, "all at one place"),
        ([Some(0), Some(1)], ["p", "q", "r", "s"], "with new ids in each event, as Copilot has it"),
        ([Some(0), Some(1)], ["", "", "", ""], "by place alone"),
        ([Some(0), Some(1)], ["a", "a", "a", "a"], "all of one id"),
    ] {
        assert_eq!(calls(&interleaved(places, names)), expected, "{how}");
    }
    let mut ended = [done(0, &call("a", "c1", "")), done(0, &call("b", "c2", ""))];
    for item in &mut ended {
        item["output_index"] = Value::Null;
    }
    let unbegun = interleaved([None, None], plain).split_off(2);
    assert_eq!(calls(&[unbegun, ended.to_vec()].concat()), expected, "by id alone, with no beginning");
}

#[test]
fn arguments_are_read_once_wherever_they_appear() {
    let begun = added(0, &call("f", "c", ""));
    let full = added(0, &call("f", "c", "{\"x\":1}"));
    let pieces = [piece(Some(0), "f", ""), piece(Some(0), "f", "{\"x\""), piece(Some(0), "f", ":1}")];
    let whole = json!({"type": "response.function_call_arguments.done", "item_id": "f", "output_index": 0, "arguments": "{\"x\":1}"});
    let empty = json!({"type": "response.function_call_arguments.done", "item_id": "f", "output_index": 0, "arguments": ""});
    let ended = done(0, &call("f", "c", "{\"x\":1}"));
    let mut object = ended.clone();
    object["item"]["arguments"] = json!({"x": 1});
    let last = end(&json!({"output": [call("f", "c", "{\"x\":1}")]}));
    let renamed = end(&json!({"output": [call("g", "d", "{\"x\":1}")]}));
    let but = |last: &Value| facts(&[begun.clone(), last.clone()]);
    for events in [
        [std::slice::from_ref(&begun), &pieces, std::slice::from_ref(&whole), std::slice::from_ref(&ended)]
            .concat(),
        [std::slice::from_ref(&full), &pieces, std::slice::from_ref(&empty)].concat(),
        vec![begun.clone(), whole.clone()],
        vec![begun.clone(), piece(Some(0), "f", "{\"x"), whole],
        vec![begun.clone(), begun.clone(), ended.clone(), ended.clone()],
        vec![ended.clone(), done(0, &call("again", "c", "{\"x\":1}"))],
        vec![full],
        vec![object],
    ] {
        assert_eq!(calls(&events), [("c".to_owned(), json!({"x": 1}))], "{events:?}");
    }
    assert_eq!(but(&last)[0], called("c", json!({"x": 1}), None), "at the end of all");
    assert_eq!(
        facts(&[ended, renamed])[..].len(),
        2,
        "a call that is repeated under another name is no new one"
    );
}

#[test]
fn truncated_arguments_are_never_run() {
    let begun = added(0, &call("f", "c", ""));
    let cut = piece(Some(0), "f", "{\"x\":");
    let incomplete = json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}});
    for events in [vec![begun.clone(), cut, end(&json!({}))], vec![begun, incomplete]] {
        let StreamEvent::ToolCall(call) = facts(&events).remove(0) else { panic!("{events:?}") };
        assert!(matches!(call.arguments, Arguments::Malformed { .. }), "{call:?}");
    }
}

#[test]
fn tools_of_the_provider_are_ignored() {
    let search =
        json!({"type": "web_search_call", "id": "ws", "status": "completed", "action": {"query": "q"}});
    let custom = json!({"type": "custom_tool_call", "id": "ct", "call_id": "c", "name": "f", "input": "x"});
    let events = [
        added(0, &search),
        json!({"type": "response.web_search_call.searching", "item_id": "ws", "output_index": 0}),
        done(0, &search),
        added(1, &custom),
        delta("custom_tool_call_input", 1, "ct", "x"),
        done(1, &custom),
        delta("output_text", 2, "m", "a"),
        end(&json!({"output": [search, custom, message("m", "a")]})),
    ];
    assert_eq!(facts(&events), [text("a"), StreamEvent::Finished(FinishReason::Stop)]);
}

#[test]
fn an_error_is_recognized_anywhere() {
    let said = delta("output_text", 0, "m", "a");
    for error in [
        json!({"type": "error", "sequence_number": 1, "code": "server_error", "message": "x", "param": null}),
        json!({"type": "response.failed", "response": {"status": "failed", "error": {"code": "server_error", "message": "x"}}}),
        json!({"type": "response.completed", "response": {"status": "failed", "error": {"code": "server_error"}}}),
        json!({"type": "response.completed", "response": {"status": "cancelled"}}),
        json!({"type": "response.incomplete", "response": {"status": "incomplete", "incomplete_details": null}}),
        json!({"type": "response.incomplete"}),
        json!({"type": "rate_limit_error", "error": {"message": "a gateway's"}}),
        json!({"error": {"message": "a proxy's"}}),
        json!({"type": "response.output_item.done", "output_index": 0}),
        json!("text"),
    ] {
        for payloads in [vec![], vec![said.clone()]] {
            let (told, end) = read(&[payloads, vec![error.clone()]].concat());
            assert_eq!(end, Err(Flaw::Payload(error.to_string())));
            assert!(told.len() <= 1, "{told:?}");
        }
    }
    let mut reader = ResponsesReader::new(Answer::new("s".into(), 1), ORIGIN.into());
    let named = SseEvent { name: Cow::Borrowed("error"), data: Cow::Borrowed("{\"type\":\"keepalive\"}") };
    assert!(matches!(reader.event(&named, &mut Facts::new()), Err(Flaw::Payload(_))));
}

#[test]
fn an_answer_without_its_terminal_event_is_truncated() {
    let said = delta("output_text", 0, "m", "a");
    let whole = [said.clone(), done(0, &message("m", "a"))];
    for payloads in [vec![], vec![said], whole.to_vec()] {
        assert!(matches!(read(&payloads).1, Err(Flaw::Truncated(_))), "{payloads:?}");
        let mut reader = ResponsesReader::new(Answer::new("s".into(), 99), ORIGIN.into());
        let mut facts = Facts::new();
        for payload in payloads.iter().map(Value::to_string).chain([DONE.to_owned()]) {
            let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Borrowed(&payload) };
            let read = reader.event(&event, &mut facts);
            assert_eq!(matches!(read, Err(Flaw::Truncated(_))), payload == DONE, "{payload}");
        }
    }
}

#[test]
fn an_empty_answer_is_not_an_answer() {
    let last = |output| end(&json!({"status": "completed", "output": output, "usage": {"input_tokens": 1}}));
    let bare = end(&json!({"status": "completed", "usage": {"input_tokens": 1}}));
    for output in [json!([]), json!([thought("r", "A")]), json!([message("m", "")])] {
        assert_eq!(read(&[last(output)]), (vec![], Err(Flaw::Payload(format!("data: {bare}\n\n")))));
    }
    let filtered = json!({"type": "response.incomplete", "response": {"incomplete_details": {"reason": "content_filter"}}});
    assert_eq!(facts(&[filtered]), [StreamEvent::Finished(FinishReason::ContentFilter)]);
}

#[test]
fn a_failure_does_not_quote_the_request() {
    let full = |kind: &str, mut response: Value| {
        response["instructions"] = json!("Be sly.");
        response["tools"] = json!([{"name": "spy"}]);
        json!({"type": kind, "sequence_number": 3, "response": response})
    };
    let error = json!({"code": "server_error", "message": "x"});
    for (kind, response) in [
        ("response.failed", json!({"status": "failed", "error": error})),
        ("response.incomplete", json!({"status": "incomplete"})),
        ("response.completed", json!({"status": "cancelled"})),
    ] {
        let kept = json!({"type": kind, "sequence_number": 3, "response": response});
        assert_eq!(read(&[full(kind, response)]).1, Err(Flaw::Payload(kept.to_string())));
    }
    let empty = full("response.completed", json!({"status": "completed", "output": []}));
    let Err(Flaw::Payload(told)) = read(&[empty]).1 else { panic!("an empty answer") };
    assert!(told.contains("completed") && !told.contains("sly") && !told.contains("spy"), "{told}");
}

#[test]
fn what_a_peer_sends_is_bounded() {
    let flood: Vec<Value> = (0..2000).map(|place| added(place, &thought("", ""))).collect();
    assert!(matches!(read(&flood).1, Err(Flaw::Excess(what)) if what.contains("items")));
    let secret = "x".repeat(100_000);
    let secrets: Vec<Value> = (0..20).map(|place| done(place, &thought("", &secret))).collect();
    assert!(matches!(read(&secrets).1, Err(Flaw::Excess(what)) if what.contains("bytes")));
    let whole = "y".repeat(700_000);
    let said_again = vec![done(0, &call("f", "c", &whole)); 5];
    assert!(matches!(read(&said_again).1, Err(Flaw::Truncated(_))), "what is said again counts once");
}

#[test]
fn buffered_reasoning_counts_towards_the_limit() {
    let heavy = json!({
        "type": "reasoning", "id": "r", "encrypted_content": "x", "summary": [{"type": "other", "data": "y".repeat(1 << 16)}],
    });
    let payloads: Vec<Value> = (0..17).map(|place| done(place, &heavy)).collect();
    let (facts, end) = read(&payloads);
    assert!(matches!(end, Err(Flaw::Excess(_))) && facts.is_empty(), "{end:?}");
}
