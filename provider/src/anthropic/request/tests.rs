//! Requests as the API expects them.

use super::*;
use crate::{
    EndpointConfig,
    history::sample::{asking, call, message, result, text},
};

fn config() -> AnthropicConfig {
    AnthropicConfig::new(EndpointConfig::new("http://127.0.0.1/v1"))
}

pub(in crate::anthropic) const ORIGIN: &str = "anthropic host";

/// Returns the body of a request made with the default configuration.
pub(in crate::anthropic) fn asked(request: &Request) -> Value {
    body(&config(), ORIGIN, request)
}

#[test]
fn a_plain_question() {
    let request =
        asking(vec![message(Role::System, &[text("be brief")]), message(Role::User, &[text("hi")])]);
    let expected = json!({
        "model": "m",
        "max_tokens": 8192,
        "system": "be brief",
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
        "stream": true,
    });
    assert_eq!(asked(&request), expected);
}

#[test]
fn a_conversation_with_tools() {
    let thought = json!({"type": "thinking", "text": "hm"});
    let error = json!({"type": "error", "message": "HTTP 500: secret"});
    let request = asking(vec![
        message(Role::User, &[text("one"), error.clone()]),
        message(
            Role::Assistant,
            &[thought.clone(), text("a"), call("t.1", &json!({"x": 1})), call("t2", &json!("{bad"))],
        ),
        message(Role::Tool, &[result("t.1", "r", false), result("t2", "", true)]),
        message(Role::User, &[text("two")]),
        message(Role::Assistant, &[thought, error, text(" \n")]),
        message(Role::User, &[text("three"), text("")]),
    ]);
    let expected = json!([
        {"role": "user", "content": [text("one")]},
        {"role": "assistant", "content": [
            text("a"),
            {"type": "tool_use", "id": "t_1", "name": "f", "input": {"x": 1}},
            {"type": "tool_use", "id": "t2", "name": "f", "input": {"malformed": "{bad"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t_1", "content": "r"},
            {"type": "tool_result", "tool_use_id": "t2", "content": "(no output)", "is_error": true},
            text("two"),
            text("three"),
        ]},
    ]);
    assert_eq!(asked(&request)["messages"], expected);
}

#[test]
fn calls_get_unique_ids_if_a_server_restarts_its_count() {
    let step = [
        message(Role::Assistant, &[call("f:0", &json!({})), call("f.0", &json!({}))]),
        message(Role::Tool, &[result("f:0", "a", false), result("f.0", "b", false)]),
    ];
    let sent = asked(&asking([step.clone(), step].concat()))["messages"].take();
    let ids = |at: usize, name: &str| [0, 1].map(|block| sent[at]["content"][block][name].clone());
    assert_eq!(ids(0, "id"), ["f_0", "f_0_2"]);
    assert_eq!((ids(1, "tool_use_id"), ids(3, "tool_use_id")), (ids(0, "id"), ids(2, "id")));
    assert!(ids(2, "id").iter().all(|id| !ids(0, "id").contains(id)), "{sent}");
}

#[test]
fn tools_and_extra_fields() {
    let mut request = asking(vec![]);
    let spec = |parameters| ToolSpec { name: "f".into(), description: "d".into(), parameters };
    request.tools = [spec(json!({"type": "object", "x": 1})), spec(Value::Null)].into();
    request.max_output_tokens = Some(7);
    let mut config = config();
    config.extra_body =
        serde_json::from_value(json!({"cache_control": {"type": "ephemeral"}, "stream": false})).unwrap();
    let asked = body(&config, ORIGIN, &request);
    assert_eq!(
        (&asked["max_tokens"], &asked["cache_control"], &asked["stream"]),
        (&json!(7), &json!({"type": "ephemeral"}), &json!(true))
    );
    let tool = json!({"name": "f", "description": "d", "input_schema": {"type": "object", "x": 1}});
    assert_eq!(asked["tools"][0], tool);
    assert_eq!(asked["tools"][1]["input_schema"], json!({"type": "object", "properties": {}}));
}

#[test]
fn images_inline_and_linked() {
    let image = |url: &str| json!({"type": "image", "url": url});
    let urls = ["data:image/gif;base64,AA", "data:image/jpg;name=a.jpg;base64,AA", "https://host/a.png"];
    let request = asking(vec![message(Role::User, &urls.map(image))]);
    let expected = json!([
        {"type": "image", "source": {"type": "base64", "media_type": "image/gif", "data": "AA"}},
        {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": "AA"}},
        {"type": "image", "source": {"type": "url", "url": "https://host/a.png"}},
    ]);
    assert_eq!(asked(&request)["messages"][0]["content"], expected);
}

#[test]
fn pdfs_are_documents() {
    let pdf = |url: &str| json!({"type": "image", "url": url, "mimeType": "application/pdf"});
    let urls = ["data:application/pdf;base64,AA", "https://host/a"];
    let request = asking(vec![message(Role::User, &urls.map(pdf))]);
    let expected = json!([
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "AA"}},
        {"type": "document", "source": {"type": "url", "url": "https://host/a"}},
    ]);
    assert_eq!(asked(&request)["messages"][0]["content"], expected);
}

#[test]
fn images_of_a_tool_are_sent_with_its_result() {
    let mut shown = result("c", "see", false);
    shown["images"] = json!([{"url": "data:image/png;base64,AAAA", "mimeType": "image/png"}]);
    let mut failed = shown.clone();
    failed["toolCallId"] = json!("d");
    failed["isError"] = json!(true);
    let calls = message(Role::Assistant, &[call("c", &json!({})), call("d", &json!({}))]);
    let request = asking(vec![calls, message(Role::Tool, &[shown, failed])]);
    let expected = json!([
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}},
    ]);
    let results = &asked(&request)["messages"][1]["content"];
    assert_eq!((&results[0]["content"], &results[1]["content"]), (&expected, &json!("see")));
}

#[test]
fn an_invented_tool_name_is_sent_as_a_valid_one() {
    let mut made_up = [call("c", &json!({})), result("c", "no such tool", true)];
    made_up.iter_mut().for_each(|chunk| chunk["toolName"] = json!("functions.f"));
    let [called, answered] = made_up;
    let history = vec![message(Role::Assistant, &[called]), message(Role::Tool, &[answered])];
    let sent = asked(&asking(history)).to_string();
    assert!(sent.contains("functions_f") && !sent.contains("functions.f"), "{sent}");
}
