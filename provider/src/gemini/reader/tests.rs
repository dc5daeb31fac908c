//! Streams as the API actually sends them.

use std::borrow::Cow;

use everturn_kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::{Reported, Usage, Value};

use super::*;

fn reader() -> GeminiReader {
    GeminiReader::new(Answer::new("gemini_s".into(), 1 << 20), "gemini host".into())
}

fn read(payloads: &[Value]) -> (Vec<StreamEvent>, Result<(), Flaw>) {
    let mut reader = reader();
    let mut facts = Facts::new();
    for payload in payloads {
        let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Owned(payload.to_string()) };
        match reader.event(&event, &mut facts) {
            Ok(Reading::More) => {}
            Ok(Reading::Complete) => panic!("only the end of the stream is the end"),
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

fn parts(parts: &Value) -> Value {
    json!({"candidates": [{"content": {"parts": parts, "role": "model"}, "index": 0}]})
}

fn text(text: &str) -> Value {
    parts(&json!([{"text": text}]))
}

fn closing(reason: &str) -> Value {
    json!({"candidates": [{"content": {"parts": [{"text": ""}], "role": "model"}, "finishReason": reason}]})
}

fn echo(data: Value) -> Echo {
    Echo { origin: "gemini host".into(), data }
}

fn call(id: &str, arguments: Value, echo: Option<Echo>) -> StreamEvent {
    let arguments = Arguments::Parsed(arguments);
    StreamEvent::ToolCall(ToolCall { id: id.into(), name: "f".into(), arguments, echo })
}

#[test]
fn a_complete_answer() {
    let payloads = [
        json!({
            "candidates": [{"content": {"parts": [{"text": "hm", "thought": true}], "role": "model"}, "index": 0}],
            "usageMetadata": {"promptTokenCount": 10, "cachedContentTokenCount": 3, "thoughtsTokenCount": 4},
            "modelVersion": "m",
            "responseId": "r",
        }),
        parts(&json!([{"text": "a"}, {"executableCode": {"code": "1"}}, {"something": {"new": 1}}])),
        parts(&json!([
            {"functionCall": {"id": "g", "name": "f", "args": {"x": 1}}, "thoughtSignature": "s"},
            {"functionCall": {"name": "f", "args": {}}},
            {"functionCall": {"name": "f"}},
        ])),
        closing("STOP"),
        json!({"usageMetadata": {"promptTokenCount": 11, "candidatesTokenCount": 5}}),
    ];
    let usage = Usage {
        input_tokens: 11,
        output_tokens: 9,
        cache_read_tokens: Some(3),
        cache_write_tokens: None,
        reasoning_tokens: Some(4),
    };
    let expected = [
        StreamEvent::Reasoning("hm".into()),
        StreamEvent::Text("a".into()),
        call("g", json!({"x": 1}), Some(echo(json!({"id": "g", "thoughtSignature": "s"})))),
        call("gemini_s_1", json!({}), None),
        call("gemini_s_2", json!({}), None),
        StreamEvent::Usage(usage),
        StreamEvent::Reported(Box::new(Reported { model: Some("m".into()), ..Reported::default() })),
        StreamEvent::Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(facts(&payloads), expected);
}

#[test]
fn a_signature_stays_with_its_part() {
    let payloads = [
        parts(&json!([{"text": "hm", "thought": true, "thoughtSignature": "s0"}])),
        parts(&json!([{"text": "a", "thoughtSignature": "s1"}])),
        parts(&json!([{"text": "", "thoughtSignature": "s2"}])),
        parts(&json!([{"functionCall": {"name": "f", "args": {}}, "thoughtSignature": ""}])),
        closing("STOP"),
    ];
    let expected = [
        StreamEvent::Reasoning("hm".into()),
        StreamEvent::Echo(echo(json!({"thought": true, "thoughtSignature": "s0"}))),
        StreamEvent::Text("a".into()),
        StreamEvent::Echo(echo(json!({"thoughtSignature": "s1"}))),
        StreamEvent::Echo(echo(json!({"thoughtSignature": "s2"}))),
        call("gemini_s_0", json!({}), None),
        StreamEvent::Finished(FinishReason::ToolCalls),
    ];
    assert_eq!(facts(&payloads), expected);
}

#[test]
fn reasons_to_stop() {
    let filtered =
        ["SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY"];
    let filtered = filtered.map(|reason| (reason, FinishReason::ContentFilter));
    for (reason, expected) in [
        ("STOP", FinishReason::Stop),
        ("MAX_TOKENS", FinishReason::Length),
        ("OTHER", FinishReason::Other("OTHER".into())),
    ]
    .into_iter()
    .chain(filtered)
    {
        let read = facts(&[text("a"), closing(reason)]);
        assert_eq!(read, [StreamEvent::Text("a".into()), StreamEvent::Finished(expected)], "{reason}");
    }
    for reason in ["", "FINISH_REASON_UNSPECIFIED"] {
        assert!(matches!(read(&[text("a"), closing(reason)]).1, Err(Flaw::Truncated(_))), "{reason:?}");
    }
}

#[test]
fn a_failed_model_has_not_answered() {
    for reason in
        ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE"]
    {
        let payload = closing(reason);
        let calls = parts(&json!([{"functionCall": {"name": "f", "args": {}}}]));
        assert_eq!(read(&[calls, payload.clone()]), (vec![], Err(Flaw::Payload(payload.to_string()))));
    }
}

#[test]
fn a_rejected_prompt_is_reported() {
    let payload = json!({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}});
    let expected = format!("the prompt was blocked (PROHIBITED_CONTENT): {payload}");
    assert_eq!(read(std::slice::from_ref(&payload)), (vec![], Err(Flaw::Payload(expected))));
    let harmless = json!({"promptFeedback": {"safetyRatings": []}});
    assert_eq!(facts(&[harmless, text("a"), closing("STOP")]).len(), 2);
}

#[test]
fn more_may_follow_the_stop_reason() {
    // Some servers send a finish reason with every piece.
    let piece = |text: &str| {
        let mut payload = closing("STOP");
        payload["candidates"][0]["content"]["parts"][0]["text"] = json!(text);
        payload
    };
    let read = facts(&[piece("a"), piece("b"), text("c"), json!({"candidates": []})]);
    assert_eq!(read, [StreamEvent::Text("abc".into()), StreamEvent::Finished(FinishReason::Stop)]);
}

#[test]
fn an_error_is_recognized_anywhere() {
    let error =
        json!({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}});
    for error in [error.clone(), json!([error]), json!("text"), json!({"candidates": 1})] {
        for payloads in [vec![], vec![text("a")], vec![text("a"), closing("STOP")]] {
            let (told, end) = read(&[payloads, vec![error.clone()]].concat());
            assert_eq!(end, Err(Flaw::Payload(error.to_string())));
            assert!(told.len() <= 1, "{told:?}");
        }
    }
    let named = SseEvent { name: Cow::Borrowed("error"), data: Cow::Borrowed("{}") };
    assert!(matches!(reader().event(&named, &mut Facts::new()), Err(Flaw::Payload(_))));
}

#[test]
fn comments_and_unknown_fields_change_nothing() {
    let mut reader = reader();
    let mut facts = Facts::new();
    let other = json!({"candidates": [{"index": 1, "content": {"parts": [{"text": "b"}]}, "finishReason": "SAFETY"}]});
    let unnamed = json!({"candidates": [{"content": {}, "index": 0}]});
    let payloads =
        ["", ": keep-alive", "{}", &other.to_string(), &unnamed.to_string(), &text("a").to_string()];
    for payload in payloads {
        let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Borrowed(payload) };
        assert_eq!(reader.event(&event, &mut facts), Ok(Reading::More));
    }
    assert_eq!(facts, [StreamEvent::Text("a".into())]);
    assert!(matches!(reader.end(&mut facts), Err(Flaw::Truncated(_))), "nothing ended");
}

#[test]
fn an_empty_answer_is_not_an_answer() {
    let stop = closing("STOP");
    let expected = Err(Flaw::Payload(format!("data: {stop}\n\n")));
    assert_eq!(read(std::slice::from_ref(&stop)), (vec![], expected));
    let signed = json!({"candidates": [{"content": {"parts": [{"text": "", "thoughtSignature": "s"}]}, "finishReason": "STOP"}]});
    assert!(matches!(read(&[signed]).1, Err(Flaw::Payload(_))), "a signature says nothing");
    assert_eq!(facts(&[closing("SAFETY")]), [StreamEvent::Finished(FinishReason::ContentFilter)]);
    assert_eq!(facts(&[closing("MAX_TOKENS")]), [StreamEvent::Finished(FinishReason::Length)]);
}

#[test]
fn every_echo_counts_towards_the_limit() {
    let signed = |part: Value| parts(&json!([part]));
    for payload in [
        signed(json!({"text": "a", "thoughtSignature": "s".repeat(50)})),
        signed(json!({"functionCall": {"name": "f"}, "thoughtSignature": "s".repeat(50)})),
    ] {
        let mut reader = GeminiReader::new(Answer::new("s".into(), 40), "gemini host".into());
        let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Owned(payload.to_string()) };
        assert!(matches!(reader.event(&event, &mut Facts::new()), Err(Flaw::Excess(_))));
    }
}
