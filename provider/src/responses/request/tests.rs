//! Requests as the API expects them.

use super::*;
use crate::{
    EndpointConfig,
    history::sample::{asking, call, message, result, text},
};

const ORIGIN: &str = "openai-responses host";

fn config() -> ResponsesConfig {
    ResponsesConfig::new(EndpointConfig::new("http://127.0.0.1/v1"))
}

fn asked(request: &Request) -> Value {
    body(&config(), ORIGIN, request)
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text})
}

fn heard(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

#[test]
fn a_plain_question() {
    let request =
        asking(vec![message(Role::System, &[text("be brief")]), message(Role::User, &[text("hi")])]);
    let expected = json!({
        "model": "m",
        "store": false,
        "instructions": "be brief",
        "input": [heard("hi")],
        "include": ["reasoning.encrypted_content"],
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
            &[thought.clone(), text("a"), call("c1", &json!({"x": 1})), call("c2", &json!("{bad"))],
        ),
        message(Role::Tool, &[result("c1", "r", false), result("c2", "", false)]),
        message(Role::User, &[text("")]),
        message(Role::Assistant, &[thought, error, text(" \n")]),
        message(Role::User, &[text("two"), text("three")]),
    ]);
    let expected = json!([
        heard("one"),
        said("a"),
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{\"x\":1}"},
        {"type": "function_call", "call_id": "c2", "name": "f", "arguments": "{\"malformed\":\"{bad\"}"},
        {"type": "function_call_output", "call_id": "c1", "output": "r"},
        {"type": "function_call_output", "call_id": "c2", "output": ""},
        {"type": "message", "role": "user", "content": [
            {"type": "input_text", "text": "two"}, {"type": "input_text", "text": "three"},
        ]},
    ]);
    assert_eq!(asked(&request)["input"], expected);
}

#[test]
fn reasoning_is_returned_to_its_origin_before_the_output_it_led_to() {
    let secret =
        |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": "gAAA"});
    let echo = |origin: &str, items: Value| json!({"origin": origin, "data": items});
    let thinking = |echo: Value| json!({"type": "thinking", "text": "hm", "echo": echo});
    let comment = json!({"type": "message", "phase": "commentary"});
    let mut with = call("c1", &json!({}));
    with["echo"] = echo(ORIGIN, json!([secret("r2")]));
    let request = asking(vec![message(
        Role::Assistant,
        &[
            thinking(echo(ORIGIN, json!([secret("r1"), comment]))),
            thinking(echo("openai-responses other", json!([secret("x1")]))),
            thinking(echo("anthropic host", json!({"signature": "x2"}))),
            text("a"),
            with,
            call("c2", &json!({})),
            text("b"),
            thinking(echo(ORIGIN, json!([secret("r3")]))),
        ],
    )]);
    let mut commented = said("a");
    commented["phase"] = json!("commentary");
    let called = |id: &str| json!({"type": "function_call", "call_id": id, "name": "f", "arguments": "{}"});
    let expected = json!([secret("r1"), commented, secret("r2"), called("c1"), called("c2"), said("b")]);
    assert_eq!(asked(&request)["input"], expected);
}

#[test]
fn tools_and_extra_fields() {
    let mut request = asking(vec![]);
    let spec = |parameters| ToolSpec { name: "f".into(), description: "d".into(), parameters };
    request.tools = [spec(json!({"type": "object", "x": 1})), spec(Value::Null)].into();
    request.max_output_tokens = Some(7);
    request.reasoning_effort = Some("high".into());
    let mut config = config();
    let format = Some(ResponseFormat::JsonObject);
    request.parameters = Parameters { response_format: format, ..Parameters::default() }.into();
    let extra =
        json!({"top_p": 0.5, "store": true, "include": [], "stream": false, "text": {"verbosity": "low"}});
    config.extra_body = serde_json::from_value(extra).unwrap();
    let sent = body(&config, ORIGIN, &request);
    assert_eq!((&sent["max_output_tokens"], &sent["top_p"]), (&json!(7), &json!(0.5)));
    assert_eq!((&sent["store"], &sent["include"], &sent["stream"]), (&json!(true), &json!([]), &json!(true)));
    assert_eq!(sent["reasoning"], json!({"effort": "high", "summary": "auto"}));
    assert_eq!(sent["text"], json!({"format": {"type": "json_object"}, "verbosity": "low"}));
    let tool = json!({
        "type": "function", "name": "f", "description": "d", "parameters": {"type": "object", "x": 1}, "strict": false,
    });
    assert_eq!(sent["tools"][0], tool);
    assert_eq!(sent["tools"][1]["parameters"], json!({"type": "object", "properties": {}}));
    config.strict_tools = true;
    assert_eq!(body(&config, ORIGIN, &request)["tools"][0]["strict"], json!(true));
}

#[test]
fn models_that_never_reason_are_not_asked_for_reasoning() {
    let mut request = asking(vec![message(Role::User, &[text("hi")])]);
    for (model, expected) in [
        ("gpt-5.5", true),
        ("o4-mini", true),
        ("openai/gpt-oss-120b", true),
        ("gpt-4o-mini", false),
        ("openai/gpt-4.1", false),
        ("ft:gpt-4o:org::id", false),
        ("gpt-5-chat-latest", false),
    ] {
        request.model = model.into();
        assert_eq!(asked(&request).get("include").is_some(), expected, "{model}");
    }
}

#[test]
fn a_long_id_is_shortened_the_same_in_call_and_result() {
    let long = |end: &str| format!("codex_mcp__{}é{end}", "x".repeat(80));
    let chunks =
        [call(&long("1"), &json!({})), call(&long("2"), &json!({})), call(&"y".repeat(64), &json!({}))];
    let request = asking(vec![
        message(Role::Assistant, &chunks),
        message(
            Role::Tool,
            &[
                result(&long("1"), "r", false),
                result(&long("2"), "r", false),
                result(&"y".repeat(64), "r", false),
            ],
        ),
    ]);
    let input = asked(&request)["input"].clone();
    let ids: Vec<&str> =
        input.as_array().unwrap().iter().map(|item| item["call_id"].as_str().unwrap()).collect();
    assert_eq!(ids[..3], ids[3..]);
    assert!(ids[0] != ids[1] && ids[2] == "y".repeat(64), "{ids:?}");
    assert!(ids.iter().all(|id| id.len() <= 64), "{ids:?}");
}

#[test]
fn images_inline_and_linked() {
    let image = |url: &str| json!({"type": "image", "url": url});
    let urls = ["data:image/gif;base64,AA", "https://host/a.png"];
    let request = asking(vec![message(Role::User, &urls.map(image))]);
    let expected = urls.map(|url| json!({"type": "input_image", "image_url": url, "detail": "auto"}));
    assert_eq!(asked(&request)["input"][0]["content"], json!(expected));
}

#[test]
fn pdfs_inline_and_linked() {
    let pdf = |url: &str| json!({"type": "image", "url": url, "mimeType": "application/pdf"});
    let data = "data:application/pdf;base64,AA";
    let request = asking(vec![message(Role::User, &[pdf(data), pdf("https://host/a")])]);
    let expected = json!([
        {"type": "input_file", "filename": "document.pdf", "file_data": data},
        {"type": "input_file", "file_url": "https://host/a"},
    ]);
    assert_eq!(asked(&request)["input"][0]["content"], expected);
}

#[test]
fn images_of_a_tool_are_sent_with_its_result() {
    let mut shown = result("c", "see", false);
    shown["images"] = json!([{"url": "data:image/png;base64,AAAA", "mimeType": "image/png"}]);
    let called = message(Role::Assistant, &[call("c", &json!({}))]);
    let request = asking(vec![called, message(Role::Tool, &[shown])]);
    let expected = json!([
        {"type": "input_text", "text": "see"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "auto"},
    ]);
    assert_eq!(asked(&request)["input"][1]["output"], expected);
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
