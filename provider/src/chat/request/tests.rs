//! Requests as the API expects them.

use everturn_wire::{Message, Role};

use super::*;
use crate::{
    EndpointConfig, HistoryForm, OutputLimit, ReturnReasoning,
    history::sample::{asking, call, message, result},
};

fn config() -> ChatConfig {
    ChatConfig::new(EndpointConfig::new("http://127.0.0.1/v1"))
}

fn messages(messages: Vec<Message>) -> Value {
    body(&config(), "o", &asking(messages))["messages"].take()
}

#[test]
fn a_plain_question() {
    let request = asking(vec![message(Role::User, &[json!({"type": "text", "text": "hi"})])]);
    let expected = json!({
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(body(&config(), "o", &request), expected);
}

#[test]
fn tools_limits_and_effort() {
    let mut request = asking(vec![]);
    let spec = |name: &str, parameters| ToolSpec { name: name.into(), description: "d".into(), parameters };
    request.tools = [spec("f", json!({"type": "object"})), spec("g", Value::Null)].into();
    request.max_output_tokens = Some(7);
    request.reasoning_effort = Some("high".into());
    let asked = body(&config(), "o", &request);
    assert_eq!(asked["max_completion_tokens"], 7);
    assert_eq!(asked["reasoning_effort"], "high");
    let function = json!({"name": "f", "description": "d", "parameters": {"type": "object"}});
    assert_eq!(asked["tools"][0], json!({"type": "function", "function": function}));
    assert_eq!(asked["tools"][1]["function"]["parameters"], json!({"type": "object", "properties": {}}));
    let asked = body(&ChatConfig { output_limit: OutputLimit::MaxTokens, ..config() }, "o", &request);
    assert_eq!((&asked["max_tokens"], asked.get("max_completion_tokens")), (&json!(7), None));
}

#[test]
fn what_is_about_tools_is_left_out_without_any() {
    let mut request = asking(vec![]);
    let choice = Some(ToolChoice::Auto);
    request.parameters =
        Parameters { tool_choice: choice, parallel_tool_calls: Some(true), ..Parameters::default() }.into();
    let asked = body(&config(), "o", &request);
    assert_eq!((asked.get("tool_choice"), asked.get("parallel_tool_calls")), (None, None));
}

#[test]
fn extra_fields_replace_any_field_except_stream() {
    let mut config = config();
    config.include_usage = false;
    config.extra_body = serde_json::from_value(json!({"model": "x", "top_k": 3, "stream": false})).unwrap();
    let expected = json!({"model": "x", "messages": [], "top_k": 3, "stream": true});
    assert_eq!(body(&config, "o", &asking(vec![])), expected);
    // An object with a type is not mixed with another one.
    let mut request = asking(vec![]);
    let format = ResponseFormat::JsonSchema { name: "n".into(), schema: json!({}), strict: None };
    request.parameters = Parameters { response_format: Some(format), ..Parameters::default() }.into();
    for format in [json!({"type": "text"}), json!({"type": "json_schema", "json_schema": {"name": "own"}})] {
        config.extra_body = [("response_format".to_owned(), format.clone())].into_iter().collect();
        assert_eq!(body(&config, "o", &request)["response_format"], format);
    }
}

#[test]
fn a_conversation_with_tools() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let call = |id: &str, input: Value| json!({"type": "tool-call", "toolCallId": id, "toolName": "f", "input": input});
    let result = |id: &str, content: &str| json!({"type": "tool-result", "toolCallId": id, "toolName": "f", "content": content, "isError": false});
    let thought = json!({"type": "thinking", "text": "hm"});
    let error = json!({"type": "error", "message": "HTTP 500: secret"});
    let sent = messages(vec![
        message(Role::System, &[json!({"type": "system", "text": "be brief"}), text("and kind")]),
        message(Role::User, &[text("one"), error.clone(), text("two")]),
        message(
            Role::Assistant,
            &[thought.clone(), text("a"), text("b"), call("1", json!({"x": 1})), call("2", json!("{bad"))],
        ),
        message(Role::Tool, &[result("1", "r"), result("2", "")]),
        message(Role::Assistant, &[thought.clone(), call("3", Value::Null)]),
        message(Role::Tool, &[result("3", "r")]),
        message(Role::Assistant, &[thought, error]),
        message(Role::Assistant, &[text("")]),
        message(Role::User, &[text("")]),
        message(Role::User, &[text("three")]),
    ]);
    let called = |id: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": arguments}});
    let expected = json!([
        {"role": "system", "content": "be brief\n\nand kind"},
        {"role": "user", "content": "one\n\ntwo"},
        {"role": "assistant", "content": "ab", "tool_calls": [called("1", "{\"x\":1}"), called("2", "{\"malformed\":\"{bad\"}")]},
        {"role": "tool", "tool_call_id": "1", "content": "r"},
        {"role": "tool", "tool_call_id": "2", "content": ""},
        {"role": "assistant", "content": null, "tool_calls": [called("3", "{}")]},
        {"role": "tool", "tool_call_id": "3", "content": "r"},
        {"role": "user", "content": "three"},
    ]);
    assert_eq!(sent, expected);
}

#[test]
fn images_are_parts_of_a_message() {
    let image = json!({"type": "image", "url": "data:image/png;base64,AA", "mimeType": "image/png"});
    let sent = messages(vec![message(Role::User, &[json!({"type": "text", "text": "what?"}), image])]);
    let parts = json!([
        {"type": "text", "text": "what?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
    ]);
    assert_eq!(sent, json!([{"role": "user", "content": parts}]));
}

#[test]
fn pdfs_are_files_of_a_message() {
    let pdf =
        json!({"type": "image", "url": "data:application/pdf;base64,AA", "mimeType": "application/pdf"});
    let sent = messages(vec![message(Role::User, &[pdf])]);
    let file = json!({"filename": "document.pdf", "file_data": "data:application/pdf;base64,AA"});
    assert_eq!(sent, json!([{"role": "user", "content": [{"type": "file", "file": file}]}]));
}

#[test]
fn reasoning_is_returned_in_the_configured_form() {
    let echo =
        |origin: &str| json!({"origin": origin, "data": [{"type": "reasoning.encrypted", "data": origin}]});
    let call = json!({"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}});
    let chunks = [
        json!({"type": "thinking", "text": "Hm, "}),
        json!({"type": "thinking", "text": "4.", "echo": echo("o")}),
        json!({"type": "thinking", "text": "", "echo": echo("another host")}),
        json!({"type": "text", "text": "It is 4."}),
        call.clone(),
    ];
    let asked = |way, chunks: &[Value]| {
        let config = ChatConfig { return_reasoning: way, ..config() };
        let history = vec![message(Role::User, &[]), message(Role::Assistant, chunks)];
        body(&config, "o", &asking(history))["messages"][0].take()
    };
    let given = |way| {
        let message = asked(way, &chunks);
        (message.get("reasoning_content").cloned(), message.get("reasoning_details").cloned())
    };
    assert_eq!(given(ReturnReasoning::Never), (None, None));
    assert_eq!(given(ReturnReasoning::Content), (Some(json!("Hm, 4.")), None));
    assert_eq!(given(ReturnReasoning::Details), (None, Some(echo("o")["data"].take())));
    assert_eq!(asked(ReturnReasoning::Content, &[call])["reasoning_content"], " ");
}

#[test]
fn two_user_messages_never_follow_each_other() {
    let text = |text: &str| json!({"type": "text", "text": text});
    let image = json!({"type": "image", "url": "https://x.test/a.png"});
    let thought = message(Role::Assistant, &[json!({"type": "thinking", "text": "hm"}), text("\n\n")]);
    let user = |chunks: &[Value]| message(Role::User, chunks);
    let sent = messages(vec![user(&[text("one")]), thought.clone(), user(&[text("two")])]);
    assert_eq!(sent, json!([{"role": "user", "content": "one\n\ntwo"}]));
    let sent = messages(vec![user(&[text("one")]), thought, user(&[image])]);
    let parts = json!([
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
    ]);
    assert_eq!(sent, json!([{"role": "user", "content": parts}]));
}

#[test]
fn white_space_is_not_content() {
    let call = json!({"type": "tool-call", "toolCallId": "c", "toolName": "f", "input": {}});
    let sent = messages(vec![
        message(Role::User, &[json!({"type": "text", "text": " \n"})]),
        message(Role::Assistant, &[json!({"type": "text", "text": "\n\n"}), call]),
    ]);
    assert_eq!((sent.as_array().map(Vec::len), &sent[0]["content"]), (Some(1), &Value::Null));
}

#[test]
fn a_history_in_the_order_that_mistral_requires() {
    let call = |id: &str| json!({"type": "tool-call", "toolCallId": id, "toolName": "f", "input": {}});
    let result = |id: &str| json!({"type": "tool-result", "toolCallId": id, "toolName": "f", "content": "r", "isError": false});
    let history = vec![
        message(Role::Assistant, &[call("abcDEF123"), call("call_0fypS1hVX")]),
        message(Role::Tool, &[result("abcDEF123"), result("call_0fypS1hVX")]),
        message(Role::User, &[json!({"type": "text", "text": "stop, do this"})]),
    ];
    let ids = |sent: &Value| {
        [0, 1].map(|at| {
            let (call, result) = (&sent[0]["tool_calls"][at]["id"], &sent[at + 1]["tool_call_id"]);
            assert_eq!(call, result);
            call.as_str().unwrap().to_owned()
        })
    };
    let roles = |sent: &Value| {
        sent.as_array().unwrap().iter().map(|message| message["role"].clone()).collect::<Vec<_>>()
    };
    let usual = body(&config(), "o", &asking(history.clone()))["messages"].take();
    assert_eq!(ids(&usual), ["abcDEF123", "call_0fypS1hVX"]);
    assert_eq!(roles(&usual), ["assistant", "tool", "tool", "user"]);
    let config = ChatConfig { history: HistoryForm::Mistral, ..config() };
    let strict = body(&config, "o", &asking(history))["messages"].take();
    let [known, foreign] = ids(&strict);
    assert_eq!(known, "abcDEF123");
    assert!(foreign.len() == 9 && foreign.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{foreign}");
    assert_eq!(roles(&strict), ["assistant", "tool", "tool", "assistant", "user"]);
}

#[test]
fn an_invented_tool_name_is_sent_as_a_valid_one() {
    let mut made_up = [call("c", &json!({})), result("c", "no such tool", true)];
    made_up.iter_mut().for_each(|chunk| chunk["toolName"] = json!("functions.f"));
    let [called, answered] = made_up;
    let history = vec![message(Role::Assistant, &[called]), message(Role::Tool, &[answered])];
    let sent = messages(history).to_string();
    assert!(sent.contains("functions_f") && !sent.contains("functions.f"), "{sent}");
}
