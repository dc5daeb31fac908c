//! Streams as servers actually send them.

use std::borrow::Cow;

use everturn_kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::{Reported, Usage};
use serde_json::json;

use super::*;

fn read_within(limit: usize, payloads: &[&str]) -> (Vec<StreamEvent>, Result<(), Flaw>) {
    let mut reader = ChatReader::new(Answer::new("call_s".into(), limit), None);
    let mut facts = Facts::new();
    for payload in payloads {
        let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Borrowed(payload) };
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
fn facts(payloads: &[&str]) -> Vec<StreamEvent> {
    let (facts, end) = read_within(1 << 20, payloads);
    assert_eq!(end, Ok(()), "{facts:?}");
    facts
}

/// Returns the flaw of an unusable answer.
fn flaw_of(payloads: &[&str]) -> Flaw {
    let (facts, end) = read_within(1 << 20, payloads);
    assert!(!facts.iter().any(|fact| matches!(fact, StreamEvent::Finished(_) | StreamEvent::ToolCall(_))));
    end.expect_err("the answer was taken")
}

fn delta(delta: &Value) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string()
}

fn finish(reason: &str) -> String {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}).to_string()
}

fn text(text: &str) -> StreamEvent {
    StreamEvent::Text(text.into())
}

const STOP: StreamEvent = StreamEvent::Finished(FinishReason::Stop);

#[test]
fn text_and_reasoning_in_every_form() {
    let thought = |text: &str| StreamEvent::Reasoning(text.into());
    let table = [
        (json!({"role": "assistant", "content": "a"}), vec![text("a")]),
        (json!({"content": ""}), vec![]),
        (json!({"content": null, "refusal": "no"}), vec![text("no")]),
        (json!({"reasoning_content": "r"}), vec![thought("r")]),
        (json!({"reasoning": "r", "reasoning_details": [{"text": "r"}]}), vec![thought("r")]),
        (json!({"reasoning": "r", "reasoning_content": "r"}), vec![thought("r")]),
        (json!({"reasoning_content": "", "reasoning": "r"}), vec![thought("r")]),
        (json!({"content": "a", "reasoning_content": "r"}), vec![thought("r"), text("a")]),
        (
            json!({"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "r"}]}, {"type": "text", "text": "a"}]}),
            vec![thought("r"), text("a")],
        ),
        (json!({"content": {"odd": 1}}), vec![]),
    ];
    for (body, mut expected) in table {
        let read = facts(&[&delta(&body), &delta(&json!({"content": "."})), &finish("stop"), DONE]);
        // Text is joined with the text before it.
        match expected.last_mut() {
            Some(StreamEvent::Text(said)) => said.push('.'),
            _ => expected.push(text(".")),
        }
        expected.push(STOP);
        assert_eq!(read, expected, "{body}");
    }
}

#[test]
fn finish_reasons() {
    let table = [
        ("stop", FinishReason::Stop),
        ("length", FinishReason::Length),
        ("content_filter", FinishReason::ContentFilter),
        ("tool_calls", FinishReason::Stop),
        ("eos", FinishReason::Other("eos".into())),
    ];
    for (reason, expected) in table {
        let read = facts(&[&delta(&json!({"content": "a"})), &finish(reason), DONE]);
        assert_eq!(read, [text("a"), StreamEvent::Finished(expected)]);
    }
    let late = [delta(&json!({"content": "a"})), finish("length"), finish("")];
    let late: Vec<_> = late.iter().map(String::as_str).collect();
    assert_eq!(
        facts(&late).last(),
        Some(&StreamEvent::Finished(FinishReason::Length)),
        "an empty one is none"
    );
}

#[test]
fn what_is_reported_of_an_answer_is_taken_from_any_frame() {
    let first = json!({"model": "m-1", "system_fingerprint": null, "service_tier": 7,
        "choices": [{"delta": {"content": "a"}}]});
    let last = json!({"model": "", "system_fingerprint": "fp", "service_tier": "x".repeat(257),
        "choices": [{"delta": {}, "finish_reason": "stop"}]});
    let counts = json!({"model": "m-2", "choices": [], "usage": {"cost": 0.25}});
    let read = facts(&[&first.to_string(), &last.to_string(), &counts.to_string(), DONE]);
    let reported = Reported {
        model: Some("m-2".into()),
        system_fingerprint: Some("fp".into()),
        service_tier: None,
        cost: serde_json::Number::from_f64(0.25),
    };
    assert_eq!(read, [text("a"), StreamEvent::Reported(Box::new(reported)), STOP]);
}

#[test]
fn token_counts_are_found_wherever_they_are() {
    let counts = json!({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 1}});
    let expected = Usage {
        input_tokens: 9,
        output_tokens: 2,
        cache_read_tokens: Some(4),
        cache_write_tokens: None,
        reasoning_tokens: Some(1),
    };
    let a = delta(&json!({"content": "a"}));
    let after = json!({"choices": [], "usage": counts}).to_string();
    let inside = json!({"choices": [{"delta": {}, "finish_reason": "stop", "usage": counts}]}).to_string();
    let beside = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": counts}).to_string();
    let null = json!({"choices": [{"delta": {}, "finish_reason": "stop"}], "usage": null}).to_string();
    for end in
        [vec![&*finish("stop"), &*after, DONE], vec![&*inside, DONE], vec![&*beside], vec![&*after, &*null]]
    {
        let read = facts(&[vec![&*a], end.clone()].concat());
        assert_eq!(read, [text("a"), StreamEvent::Usage(expected), STOP], "{end:?}");
    }
    assert_eq!(facts(&[&a, &null, DONE]), [text("a"), STOP]);
    let odd =
        json!({"choices": [], "usage": {"prompt_tokens": -1, "prompt_cache_hit_tokens": 3}}).to_string();
    assert_eq!(facts(&[&a, &null, &odd, DONE]), [text("a"), STOP], "counts that are none");
}

#[test]
fn calls_are_yielded_only_once_the_answer_is_complete() {
    let first = delta(
        &json!({"tool_calls": [{"index": 0, "id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}]}),
    );
    let rest = delta(&json!({"tool_calls": [{"index": 0, "function": {"arguments": "{\"x\":1}"}}]}));
    let call = ToolCall {
        id: "c".into(),
        name: "f".into(),
        arguments: Arguments::Parsed(json!({"x": 1})),
        echo: None,
    };
    let expected = [StreamEvent::ToolCall(call), StreamEvent::Finished(FinishReason::ToolCalls)];
    for reason in ["tool_calls", "stop", "function_call"] {
        assert_eq!(facts(&[&first, &rest, &finish(reason), DONE]), expected, "{reason}");
    }
    assert!(
        matches!(flaw_of(&[&first, &rest]), Flaw::Truncated(_)),
        "arguments are whole, the answer is not"
    );
    assert!(matches!(flaw_of(&[&first, &rest, DONE]), Flaw::Truncated(_)));
    let error = r#"{"error":{"message":"no"}}"#;
    assert_eq!(flaw_of(&[&first, &rest, &finish("tool_calls"), error]), Flaw::Payload(error.into()));
}

#[test]
fn other_forms_of_calls() {
    let as_object = json!({"tool_calls": [{"id": "c", "function": {"name": "f", "arguments": {"x": 1}}}]});
    let legacy = json!({"function_call": {"name": "f", "arguments": "{\"x\":1}"}});
    for body in [as_object, legacy] {
        let read = facts(&[&delta(&body), &finish("tool_calls"), DONE]);
        let [StreamEvent::ToolCall(call), _] = read.as_slice() else { panic!("{read:?}") };
        assert_eq!(
            (call.name.as_str(), &call.arguments),
            ("f", &Arguments::Parsed(json!({"x": 1}))),
            "{body}"
        );
    }
}

#[test]
fn truncated_arguments_never_count_as_complete() {
    let call = delta(
        &json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "f", "arguments": "{\"x\":"}}]}),
    );
    for reason in ["tool_calls", "length"] {
        let read = facts(&[&call, &finish(reason), DONE]);
        let StreamEvent::ToolCall(ToolCall { arguments: Arguments::Malformed { raw, .. }, .. }) = &read[0]
        else {
            panic!("{read:?}")
        };
        assert_eq!(raw, "{\"x\":");
    }
}

#[test]
fn an_error_is_recognized_anywhere_and_in_any_form() {
    let a = delta(&json!({"content": "a"}));
    for error in [
        r#"{"error":{"message":"no","code":429}}"#,
        r#"{"error":"no"}"#,
        r#"{"id":"x","choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}],"error":{"code":502}}"#,
        r#"{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}"#,
        r#"{"choices":[{"index":0,"error":{"code":502},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"error":{"message":"no"}}"#,
        r#"{"object":"error","message":"no","code":500}"#,
        r#"{"detail":"no"}"#,
        r#"{"type":"tokens","code":"rate_limit_exceeded","message":"no"}"#,
        r#"{"internalServerException":{"message":"no"}}"#,
        "upstream sent opaque plain text",
        "<html>502</html>",
        r#"{"choices":[{"index":0,"delta":{"content":"cu"#,
        "[]",
        "7",
    ] {
        for payloads in [vec![error], vec![&a, error], vec![&a, &finish("stop"), error, DONE]] {
            assert_eq!(flaw_of(&payloads), Flaw::Payload(error.into()), "{payloads:?}");
        }
    }
}

#[test]
fn an_event_named_error_is_an_error() {
    let mut reader = ChatReader::new(Answer::new("call_s".into(), 100), None);
    let event = SseEvent { name: Cow::Borrowed("error"), data: Cow::Borrowed("{\"choices\":[]}") };
    assert_eq!(reader.event(&event, &mut Facts::new()), Err(Flaw::Payload("{\"choices\":[]}".into())));
}

#[test]
fn unknown_payloads_are_ignored() {
    let a = delta(&json!({"content": "a"}));
    let second = r#"{"choices":[{"index":1,"delta":{"content":"b"},"finish_reason":"length"}]}"#;
    for other in [
        "",
        ": OPENROUTER PROCESSING",
        r#"{"type":"ping"}"#,
        r#"{"choices":null,"prompt_filter_results":[]}"#,
        r#"{"choices":[],"prompt_filter_results":[{"prompt_index":0}],"error":null}"#,
        r#"{"choices":[{"index":0,"delta":null,"finish_reason":null,"content_filter_results":{}}]}"#,
        second,
    ] {
        assert_eq!(facts(&[other, &a, other, &finish("stop"), other, DONE]), [text("a"), STOP], "{other}");
    }
}

#[test]
fn an_end_before_the_answers_end_is_a_truncation() {
    let a = delta(&json!({"content": "a"}));
    for payloads in [vec![DONE], vec![], vec![&*a], vec![&*a, DONE]] {
        assert!(matches!(flaw_of(&payloads), Flaw::Truncated(_)), "{payloads:?}");
    }
    assert_eq!(facts(&[&a, &finish("stop")]), [text("a"), STOP], "an end in good order is as good as [DONE]");
}

#[test]
fn an_empty_answer_is_not_an_answer() {
    let stop = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":36000,"completion_tokens":0}}"#;
    assert_eq!(flaw_of(&[stop, DONE]), Flaw::Payload(format!("data: {stop}\n\ndata: [DONE]\n\n")));
    assert!(matches!(flaw_of(&[stop]), Flaw::Payload(_)));
    assert!(matches!(flaw_of(&[&finish("tool_calls"), DONE]), Flaw::Payload(_)));
    let limit = StreamEvent::Finished(FinishReason::Length);
    assert_eq!(facts(&[&finish("length"), DONE]), [limit], "a limit that was met says so itself");
}

#[test]
fn an_answer_has_a_limit() {
    let five = |key: &str| delta(&json!({key: "12345"}));
    let call = delta(
        &json!({"tool_calls": [{"index": 0, "id": "1", "function": {"name": "2", "arguments": "345"}}]}),
    );
    for second in [five("content"), five("reasoning"), call] {
        let payloads = [five("content"), second, finish("length")];
        let payloads: Vec<_> = payloads.iter().map(String::as_str).collect();
        assert_eq!(read_within(10, &payloads).1, Ok(()));
        let (facts, end) = read_within(9, &payloads);
        assert_eq!(facts, [text("12345")]);
        let Err(Flaw::Excess(why)) = end else { panic!("{end:?}") };
        assert!(why.contains("9 bytes"), "{why}");
    }
}

#[test]
fn reasoning_details_are_kept_if_configured() {
    let detail = |text: &str| json!({"type": "reasoning.text", "index": 0, "text": text});
    let payloads = [
        delta(&json!({"reasoning": "a", "reasoning_details": [detail("a")]})),
        delta(&json!({"content": "x", "reasoning_details": [detail("b")]})),
        finish("stop"),
        DONE.to_owned(),
    ];
    for origin in [None, Some("o".to_owned())] {
        let mut reader = ChatReader::new(Answer::new("call_s".into(), 1 << 20), origin.clone());
        let mut facts = Facts::new();
        for payload in &payloads {
            let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Borrowed(payload) };
            reader.event(&event, &mut facts).unwrap();
        }
        let echo = origin.map(|origin| StreamEvent::Echo(Echo { origin, data: json!([detail("ab")]) }));
        let mut expected = vec![StreamEvent::Reasoning("a".into()), text("x")];
        expected.extend(echo);
        expected.push(STOP);
        assert_eq!(Vec::from(facts), expected);
    }
}

#[test]
fn reasoning_details_count_towards_the_limit() {
    let read = |details: &Value| {
        let mut reader = ChatReader::new(Answer::new("call_s".into(), 1 << 20), Some("o".into()));
        let payload = delta(&json!({"reasoning_details": details}));
        let event = SseEvent { name: Cow::Borrowed("message"), data: Cow::Owned(payload) };
        reader.event(&event, &mut Facts::new())
    };
    let worded = json!({"type": "reasoning.text", "index": 0, "text": "word "});
    assert_eq!(read(&json!(vec![worded; 10_000])), Ok(Reading::More), "their words alone are kept");
    let named = |n: usize| json!({"type": "reasoning.text", "index": 0, format!("{n}"): {}});
    for many in [json!(vec![json!({}); 10_000]), (0..10_000).map(named).collect()] {
        assert!(matches!(read(&many), Err(Flaw::Excess(_))));
    }
}
