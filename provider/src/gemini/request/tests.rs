//! Requests as the API expects them.

use everturn_wire::{Message, Role};

use super::*;
use crate::{
    EndpointConfig,
    history::sample::{asking, call, message, result, text},
};

const ORIGIN: &str = "gemini host";

fn config() -> GeminiConfig {
    GeminiConfig::new(EndpointConfig::new("http://127.0.0.1/v1beta"))
}

fn asked(request: &Request) -> Value {
    body(&config(), ORIGIN, request)
}

fn contents(messages: Vec<Message>) -> Value {
    asked(&asking(messages))["contents"].take()
}

fn part(text: &str) -> Value {
    json!({"text": text})
}

fn thought(text: &str, echo: &Value) -> Value {
    json!({"type": "thinking", "text": text, "echo": echo})
}

/// Returns a call with this echo data.
fn own_call(id: &str, data: &Value) -> Value {
    let mut chunk = call(id, &json!({}));
    chunk["echo"] = own(data);
    chunk
}

fn own(data: &Value) -> Value {
    json!({"origin": ORIGIN, "data": data})
}

#[test]
fn a_plain_question() {
    let request =
        asking(vec![message(Role::System, &[text("be brief")]), message(Role::User, &[text("hi")])]);
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "be brief"}]},
        "contents": [{"role": "user", "parts": [{"text": "hi"}]}],
        "generationConfig": {"thinkingConfig": {"includeThoughts": true}},
    });
    assert_eq!(asked(&request), expected);
}

#[test]
fn a_conversation_with_tools() {
    let thought = thought("hm", &Value::Null);
    let error = json!({"type": "error", "message": "HTTP 500: secret"});
    let read = contents(vec![
        message(Role::User, &[text("one"), error.clone()]),
        message(
            Role::Assistant,
            &[thought.clone(), text("a"), call("t1", &json!({"x": 1})), call("t2", &json!("{bad"))],
        ),
        message(Role::Tool, &[result("t1", "r", false), result("t2", "", true)]),
        message(Role::User, &[text("two")]),
        message(Role::Assistant, &[thought, error, text(" \n")]),
        message(Role::User, &[text("three"), text("")]),
    ]);
    let expected = json!([
        {"role": "user", "parts": [part("one")]},
        {"role": "model", "parts": [
            part("a"),
            {"functionCall": {"name": "f", "args": {"x": 1}}, "thoughtSignature": "skip_thought_signature_validator"},
            {"functionCall": {"name": "f", "args": {"malformed": "{bad"}}},
        ]},
        {"role": "user", "parts": [
            {"functionResponse": {"name": "f", "response": {"output": "r"}}},
            {"functionResponse": {"name": "f", "response": {"error": ""}}},
        ]},
        {"role": "user", "parts": [part("two"), part("three")]},
    ]);
    assert_eq!(read, expected);
}

#[test]
fn an_echo_of_a_part_is_returned_with_it() {
    let read = contents(vec![
        message(Role::User, &[text("one")]),
        message(
            Role::Assistant,
            &[
                thought("hm", &own(&json!({"thought": true, "thoughtSignature": "s0"}))),
                thought("unsigned", &Value::Null),
                text("a"),
                thought("", &own(&json!({"thoughtSignature": "s1"}))),
                own_call("c1", &json!({"thoughtSignature": "s2", "id": "g1"})),
                own_call("c2", &json!({"id": "g2"})),
                own_call("c3", &json!({"thoughtSignature": "s3"})),
            ],
        ),
        message(Role::Tool, &[result("c1", "1", false), result("c2", "2", false), result("c3", "3", false)]),
    ]);
    let parts = json!([
        {"text": "hm", "thought": true, "thoughtSignature": "s0"},
        {"text": "a", "thoughtSignature": "s1"},
        {"functionCall": {"id": "g1", "name": "f", "args": {}}, "thoughtSignature": "s2"},
        {"functionCall": {"id": "g2", "name": "f", "args": {}}},
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s3"},
    ]);
    assert_eq!(read[1], json!({"role": "model", "parts": parts}));
    let ids: Vec<_> =
        read[2]["parts"].as_array().unwrap().iter().map(|part| &part["functionResponse"]["id"]).collect();
    assert_eq!(ids, [&json!("g1"), &json!("g2"), &Value::Null]);
}

#[test]
fn echoes_of_other_providers_are_not_sent() {
    let foreign = json!({"origin": "gemini another.host", "data": {"thoughtSignature": "s", "id": "g"}});
    let mut called = call("c", &json!({}));
    called["echo"] = foreign.clone();
    let read = contents(vec![
        message(Role::User, &[text("one")]),
        message(Role::Assistant, &[thought("hm", &foreign), text("a"), thought("", &foreign), called]),
        message(Role::Tool, &[result("c", "r", false)]),
    ]);
    let expected = json!([
        part("a"),
        {"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "skip_thought_signature_validator"},
    ]);
    assert_eq!(read[1]["parts"], expected);
    assert_eq!(read[2]["parts"][0]["functionResponse"].get("id"), None);
}

/// The API rejects a part with nothing but a signature.
#[test]
fn a_signature_without_a_part_is_left_out() {
    let lone = |data| thought("", &own(&data));
    let signature = json!({"thoughtSignature": "s"});
    let read = contents(vec![
        message(Role::User, &[text("one")]),
        message(
            Role::Assistant,
            &[
                lone(signature.clone()),
                lone(json!({"thought": true, "thoughtSignature": "s"})),
                thought("hm", &own(&json!({"thought": true, "thoughtSignature": "s0"}))),
                lone(signature.clone()),
                own_call("c", &json!({"thoughtSignature": "s1"})),
                lone(signature),
            ],
        ),
        message(Role::Tool, &[result("c", "r", false)]),
        message(Role::Assistant, &[lone(json!("not ours")), text("a")]),
    ]);
    let call = json!({"functionCall": {"name": "f", "args": {}}, "thoughtSignature": "s1"});
    let hm = json!({"text": "hm", "thought": true, "thoughtSignature": "s0"});
    assert_eq!((&read[1]["parts"], &read[3]["parts"]), (&json!([hm, call]), &json!([part("a")])));
}

#[test]
fn results_are_sent_in_the_order_of_their_calls() {
    let step = |ids: [&str; 2]| {
        [
            message(Role::Assistant, &[call(ids[0], &json!({})), call(ids[1], &json!({}))]),
            message(Role::Tool, &[result(ids[1], "second", false), result(ids[0], "first", false)]),
        ]
    };
    let [calls, results] = step(["a", "b"]);
    let [more_calls, more_results] = step(["b", "a"]);
    let read = contents(vec![message(Role::User, &[text("go")]), calls, results, more_calls, more_results]);
    for turn in [&read[2], &read[4]] {
        let outputs: Vec<_> =
            (0..2).map(|n| &turn["parts"][n]["functionResponse"]["response"]["output"]).collect();
        assert_eq!(outputs, ["first", "second"]);
    }
}

#[test]
fn tools_and_extra_fields() {
    let mut request = asking(vec![]);
    let spec = |parameters| ToolSpec { name: "f".into(), description: "d".into(), parameters };
    request.tools = [spec(json!({"type": "object", "x": 1})), spec(Value::Null)].into();
    request.max_output_tokens = Some(7);
    let mut config = config();
    config.extra_body = serde_json::from_value(json!({
        "generationConfig": {"temperature": 0.5, "thinkingConfig": {"includeThoughts": false}},
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "contents": [],
    }))
    .unwrap();
    let expected = json!({
        "contents": [],
        "tools": [{"functionDeclarations": [
            {"name": "f", "description": "d", "parametersJsonSchema": {"type": "object", "x": 1}},
            {"name": "f", "description": "d"},
        ]}],
        "generationConfig": {
            "maxOutputTokens": 7,
            "temperature": 0.5,
            "thinkingConfig": {"includeThoughts": false},
        },
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
    });
    assert_eq!(body(&config, ORIGIN, &request), expected);
    let mut request = asking(vec![]);
    request.parameters = Parameters { tool_choice: Some(ToolChoice::Auto), ..Parameters::default() }.into();
    assert_eq!(asked(&request).get("toolConfig"), None, "without tools, it is refused");
}

#[test]
fn effort_is_a_word_or_a_budget() {
    for (effort, expected) in [
        ("high", json!({"includeThoughts": true, "thinkingLevel": "high"})),
        ("2000", json!({"includeThoughts": true, "thinkingBudget": 2000})),
        ("-1", json!({"includeThoughts": true, "thinkingBudget": -1})),
        ("0", json!({"thinkingBudget": 0})),
    ] {
        let mut request = asking(vec![]);
        request.reasoning_effort = Some(effort.into());
        assert_eq!(asked(&request)["generationConfig"]["thinkingConfig"], expected);
    }
}

#[test]
fn images_inline_and_linked() {
    let image =
        |url: &str, mime_type: Option<&str>| json!({"type": "image", "url": url, "mimeType": mime_type});
    let read = contents(vec![message(
        Role::User,
        &[
            image("data:image/gif;base64,AA", None),
            image("data:application/pdf;base64,AA", None),
            image("data:;base64,AA", Some("image/webp")),
            image("data:image/jpg;name=a.jpg;base64,AA", None),
            image("https://host/a.png", Some("image/png")),
            image("https://host/a", None),
        ],
    )]);
    let expected = json!([
        {"inlineData": {"mimeType": "image/gif", "data": "AA"}},
        {"inlineData": {"mimeType": "application/pdf", "data": "AA"}},
        {"inlineData": {"mimeType": "image/webp", "data": "AA"}},
        {"inlineData": {"mimeType": "image/jpeg", "data": "AA"}},
        {"fileData": {"mimeType": "image/png", "fileUri": "https://host/a.png"}},
        {"fileData": {"fileUri": "https://host/a"}},
    ]);
    assert_eq!(read[0]["parts"], expected);
}

#[test]
fn a_model_is_a_resource() {
    for (model, expected) in [
        ("gemini-x", "models/gemini-x:streamGenerateContent"),
        ("models/gemini-x", "models/gemini-x:streamGenerateContent"),
        ("tunedModels/mine", "tunedModels/mine:streamGenerateContent"),
    ] {
        assert_eq!(path(model).join("/"), expected);
    }
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

#[test]
fn images_of_a_result_are_sent_to_models_that_accept_them() {
    let asked_of = |model: &str, shown: &Value, is_error: bool| {
        let mut answer = result("c", "[image: image/png, 3 bytes]", is_error);
        answer["images"] = json!([shown]);
        let messages =
            vec![message(Role::Assistant, &[call("c", &json!({}))]), message(Role::Tool, &[answer])];
        let request = Request { model: model.to_owned(), ..asking(messages) };
        asked(&request)["contents"][1]["parts"][0]["functionResponse"].take()
    };
    let png = json!({"url": "data:image/png;base64,QUJD"});
    let parts = json!([{"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]);
    for model in ["gemini-3-pro-preview", "gemini-3.5-flash", "publishers/google/models/gemini-12-pro"] {
        let sent = asked_of(model, &png, false);
        assert_eq!(sent["parts"], parts, "{model}");
        assert_eq!(sent["response"], json!({"output": "[image: image/png, 3 bytes]"}), "{model}");
    }
    for model in ["gemini-2.5-pro", "gemini-flash-latest", "gemma-3-27b", "gemini-", "models/tuned-3"] {
        assert_eq!(asked_of(model, &png, false).get("parts"), None, "{model}");
    }
    for url in ["data:image/svg+xml;base64,QUJD", "https://example.com/a.png"] {
        assert_eq!(asked_of("gemini-3-pro", &json!({"url": url}), false).get("parts"), None, "{url}");
    }
    assert_eq!(asked_of("gemini-3-pro", &png, true).get("parts"), None);
}
