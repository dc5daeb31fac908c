use std::sync::Arc;

use everturn_kernel::{Arguments, FinishReason, StreamEvent, ToolCall};
use everturn_wire::{Chunk, Image, Message, Role};
use serde_json::json;

use super::*;

const SECRET: &str = "sk-secret-1234567890";

/// Hides any eight consecutive characters of the secret, as the server's redaction does.
fn content() -> Content {
    Content::new(Arc::new(|text: &mut String| {
        for length in (8..=SECRET.len()).rev() {
            for start in 0..=SECRET.len() - length {
                *text = text.replace(&SECRET[start..start + length], "[redacted]");
            }
        }
    }))
}

fn parsed(json: &str) -> Value {
    assert!(json.len() <= MAX_ATTRIBUTE, "{} bytes", json.len());
    serde_json::from_str(json).unwrap()
}

fn text(text: impl Into<String>) -> Chunk {
    Chunk::Text { text: text.into() }
}

fn call(arguments: Value) -> Chunk {
    Chunk::ToolCall {
        tool_call_id: "c1".into(),
        tool_name: "look".into(),
        input: arguments,
        step_id: None,
        echo: None,
    }
}

fn result(content: &str, images: Vec<Image>) -> Chunk {
    Chunk::ToolResult {
        tool_call_id: "c1".into(),
        tool_name: "look".into(),
        content: content.into(),
        is_error: false,
        step_id: None,
        images,
        decisions: Vec::new(),
        questions: Vec::new(),
    }
}

fn png(bytes: usize) -> String {
    format!("data:image/png;base64,{}", "AAAA".repeat(bytes / 3))
}

#[test]
fn messages_have_the_form_of_the_conventions() {
    let system = Chunk::System { text: "Be brief.".into(), keeps_from: None };
    let photo = Chunk::Image { url: png(300), mime_type: None };
    let link = Chunk::Image { url: "https://example.com/a.png?signature=x".into(), mime_type: None };
    let thought = Chunk::Thinking { text: "Hm.".into(), echo: None };
    let image = Image { url: png(30), mime_type: Some("image/png".into()) };
    let messages = [
        Message::new(Role::System, [system]),
        Message::new(Role::User, [text("What is it?"), photo, link]),
        Message::new(Role::Assistant, [thought, call(json!({"at": 1}))]),
        Message::new(Role::Tool, [result("a cat", vec![image])]),
    ];
    let history = History::new(&content(), &messages);
    assert_eq!(parsed(&history.instructions.unwrap()), json!([{"type": "text", "content": "Be brief."}]));
    assert_eq!(
        parsed(&history.messages),
        json!([
            {"role": "user", "parts": [
                {"type": "text", "content": "What is it?"},
                {"type": "image", "mime_type": "image/png", "size": 300},
                {"type": "uri", "modality": "image", "uri": "https://example.com/a.png"},
            ]},
            {"role": "assistant", "parts": [
                {"type": "reasoning", "content": "Hm."},
                {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"at": 1}},
            ]},
            {"role": "tool", "parts": [
                {"type": "tool_call_response", "id": "c1", "response": "[image/png, 30 bytes]\na cat"},
            ]},
        ])
    );
}

#[test]
fn an_answer_is_one_message_with_its_reason_to_end() {
    let mut answer = Answer::default();
    assert_eq!(answer.written(&content()), None);
    let called = ToolCall {
        id: "c1".into(),
        name: "look".into(),
        arguments: Arguments::Parsed(json!({})),
        echo: None,
    };
    let events = [
        StreamEvent::Reasoning("H".into()),
        StreamEvent::Reasoning("m".into()),
        StreamEvent::Text("Look".into()),
        StreamEvent::Text("ing".into()),
        StreamEvent::ToolCall(called),
    ];
    for event in &events {
        answer.add(&content(), event);
    }
    let parts = json!([
        {"type": "reasoning", "content": "Hm"},
        {"type": "text", "content": "Looking"},
        {"type": "tool_call", "id": "c1", "name": "look", "arguments": {}},
    ]);
    let written = parsed(&answer.written(&content()).unwrap());
    assert_eq!(written, json!([{"role": "assistant", "parts": parts, "finish_reason": "cancelled"}]));
    answer.add(&content(), &StreamEvent::Finished(FinishReason::ToolCalls));
    let written = parsed(&answer.written(&content()).unwrap());
    assert_eq!(written, json!([{"role": "assistant", "parts": parts, "finish_reason": "tool_call"}]));
}

#[test]
fn the_newest_messages_are_kept_and_cuts_are_visible() {
    let old = (0..5_000).map(|at| Message::new(Role::User, [text(format!("message {at}"))]));
    let long = Message::new(Role::User, [text("\u{1}".repeat(1 << 20))]);
    let messages: Vec<_> = old.chain([long, Message::new(Role::Assistant, [text("the newest")])]).collect();
    let written = History::new(&content(), &messages).messages;
    let all = parsed(&written);
    let first = all[0]["parts"][0]["content"].as_str().unwrap();
    assert!(first.starts_with('[') && first.ends_with("earlier parts left out]"), "{first}");
    let all = all.as_array().unwrap();
    assert_eq!(all.last().unwrap()["parts"][0]["content"], "the newest");
    assert!(all[all.len() - 2]["parts"][0]["content"].as_str().unwrap().ends_with(clip::CUT));
    assert_eq!(all[all.len() - 3]["parts"][0]["content"], "message 4999");
    let instructions: Vec<_> = (0..99).map(|_| text("x".repeat(4_000))).collect();
    let history = History::new(&content(), &[Message::new(Role::System, instructions)]);
    assert!(parsed(&history.instructions.unwrap())[0]["content"].as_str().unwrap().contains("left out"));
    assert_eq!(history.messages, "[]");
}

#[test]
fn an_endless_answer_takes_bounded_memory() {
    let (mut answer, content) = (Answer::default(), content());
    for at in 0..10_000 {
        answer.add(&content, &StreamEvent::Text("\"more\" ".repeat(10)));
        if at > 9_000 {
            answer.add(&content, &StreamEvent::Reasoning("hm".into()));
            let arguments = Arguments::Parsed(json!({"text": "y".repeat(1_000)}));
            let called = ToolCall { id: "c".into(), name: "n".into(), arguments, echo: None };
            answer.add(&content, &StreamEvent::ToolCall(called));
        }
    }
    assert!(answer.size <= MAX_ATTRIBUTE + SLACK && answer.parts.len() <= answer::MAX_PARTS);
    let written = parsed(&answer.written(&content).unwrap());
    let parts = written[0]["parts"].as_array().unwrap();
    assert!(parts[0]["content"].as_str().unwrap().ends_with(clip::CUT));
    assert!(parts.last().unwrap()["content"].as_str().unwrap().ends_with("further parts left out]"));
}

#[test]
fn large_arguments_become_a_cut_text() {
    let content = content();
    assert_eq!(content.value(&json!({"a": [1, null]}), 100), json!({"a": [1, null]}));
    let cut = content.value(&json!({"a": "x".repeat(1 << 20)}), 100);
    let cut = cut.as_str().unwrap();
    assert!(cut.starts_with(r#"{"a":"xxx"#) && cut.ends_with(clip::CUT) && cut.len() < 120, "{cut}");
    assert!(content.value(&json!(vec!["\\\""; 30]), 100).is_string());
}

#[test]
fn secrets_never_appear_not_even_in_part() {
    let content = content();
    // The secret is wherever a cut may fall.
    for room in 60..90 {
        for before in [50, 60 + SLACK, 64 + SLACK, 70 + SLACK] {
            let shown = content.text(&format!("{}{SECRET} and more", "x".repeat(before)), room);
            assert!((8..SECRET.len()).all(|end| !shown.contains(&SECRET[..end])), "{shown}");
        }
    }
    let value = json!({"key": [SECRET, {SECRET: 1}]});
    assert!(!content.value(&value, 1_000).to_string().contains("secret"));
    let mut answer = Answer::default();
    for piece in SECRET.split_inclusive('-') {
        answer.add(&content, &StreamEvent::Text(piece.into()));
    }
    assert!(!answer.written(&content).unwrap().contains("secret"));
    let messages = [Message::new(Role::Tool, [call(json!(SECRET)), result(SECRET, vec![])])];
    assert!(!History::new(&content, &messages).messages.contains("secret"));
}

#[test]
fn data_urls_are_replaced_by_type_and_size() {
    let content = content();
    let shown = |text: &str| content.text(text, 1_000);
    assert_eq!(shown(&format!("![a]({}) ok", png(3_000_000))), "![a]([image/png, 3000000 bytes]) ok");
    assert_eq!(shown("data:image/svg+xml,%3Csvg/%3E."), "[image/svg+xml, 11 bytes]");
    assert_eq!(
        shown("data:;base64,AAAA data:text/html;charset=utf-8;base64,AA=="),
        "[text/plain, 3 bytes] [text/html, 1 bytes]"
    );
    assert_eq!(shown("our data: a, b, data:c,d and data:"), "our data: a, b, data:c,d and data:");
    let mut answer = Answer::default();
    answer.add(&content, &StreamEvent::Text(png(90_000)));
    assert!(answer.written(&content).unwrap().contains("[image/png, 15"), "{answer:?}");
    assert!(answer.written(&content).unwrap().contains(" bytes or more]… [cut]"));
}
