//! Requests as sent by clients.

use everturn_dialect::openai::{ChatRequest, OnDisconnect, Refusal};
use everturn_wire::Value;
use serde_json::json;

fn read(body: &Value) -> Result<ChatRequest, Refusal> {
    ChatRequest::read(body.to_string().as_bytes(), None)
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// Returns a request with these fields beside its messages.
fn with(fields: Value) -> Value {
    let mut body = json!({ "model": "m", "messages": [user("hi")] });
    let Value::Object(fields) = fields else { panic!("{fields}") };
    body.as_object_mut().unwrap().extend(fields);
    body
}

#[test]
fn a_conversation_with_tools_becomes_a_history() {
    let request = read(&json!({
        "model": "main/large",
        "messages": [
            { "role": "system", "content": "Be brief." },
            { "role": "user", "content": [
                { "type": "text", "text": "What is this?" },
                { "type": "image_url", "image_url": { "url": "data:image/png;base64,AA==", "detail": "low" } },
            ] },
            { "role": "assistant", "content": null, "reasoning_content": "Look.", "tool_calls": [
                { "id": "a", "type": "function", "function": { "name": "look", "arguments": "{\"at\":1}" } },
                { "id": "b", "type": "function", "function": { "name": "ask", "arguments": "{broken" } },
            ] },
            { "role": "tool", "tool_call_id": "b", "content": [{ "type": "text", "text": "no" }] },
            { "role": "tool", "tool_call_id": "a", "content": "a cat" },
            { "role": "developer", "content": [{ "type": "text", "text": "In French." }] },
            { "role": "assistant", "content": "" },
            { "role": "user", "content": "So?", "name": "ada" },
        ],
        "tools": [{ "type": "function", "function": { "name": "look", "strict": true, "parameters": { "type": "object" } } }],
        "tool_choice": { "type": "function", "function": { "name": "look" } },
        "response_format": { "type": "json_schema", "json_schema": { "name": "n", "schema": { "type": "object" }, "strict": true } },
        "stop": "END", "temperature": 1, "max_tokens": 5, "max_completion_tokens": 7, "seed": 3,
        "reasoning_effort": "low", "parallel_tool_calls": false,
        "stream": true, "stream_options": { "include_usage": true },
    }))
    .unwrap();
    assert!(request.stream && request.include_usage && request.holds_text);
    insta::assert_json_snapshot!(request.send);
}

#[test]
fn what_asks_for_nothing_and_what_nobody_knows_is_passed_over() {
    let request = with(json!({
        "n": 1, "logprobs": false, "top_logprobs": null, "logit_bias": {}, "modalities": ["text"], "functions": [],
        "service_tier": "auto", "verbosity": "medium", "repetition_penalty": 1.0, "user": "u", "store": false,
        "metadata": { "a": "b" }, "stream_options": null, "stop": null, "prompt_cache_key": "k",
        "session_id": { "deep": [1, 2, { "a": null }] },
    }));
    let plain = read(&with(json!({}))).unwrap();
    let mut read = read(&request).unwrap();
    read.ignored.clear();
    assert_eq!(read, plain);
    assert!(!plain.stream && !plain.holds_text && plain.send.tools.is_none() && plain.bare);
}

#[test]
fn what_is_not_there_is_refused_by_name() {
    for (fields, param) in [
        (json!({ "n": 2 }), "n"),
        (json!({ "logprobs": true }), "logprobs"),
        (json!({ "top_logprobs": 3 }), "top_logprobs"),
        (json!({ "logit_bias": { "50256": -100 } }), "logit_bias"),
        (json!({ "audio": { "voice": "alloy" } }), "audio"),
        (json!({ "modalities": ["text", "audio"] }), "modalities"),
        (json!({ "modalities": ["audio"] }), "modalities"),
        (json!({ "functions": [{ "name": "f" }] }), "functions"),
        (json!({ "tools": [{ "type": "custom", "custom": { "name": "c" } }] }), "tools[0]"),
        (json!({ "tool_choice": { "type": "allowed_tools" } }), "tool_choice"),
        (json!({ "response_format": { "type": "grammar" } }), "response_format"),
        (
            json!({ "messages": [{ "role": "user", "content": [{ "type": "input_audio" }] }] }),
            "messages[0].content[0]",
        ),
    ] {
        let why = read(&with(fields.clone())).unwrap_err();
        assert_eq!((why.status, why.param.as_deref()), (400, Some(param)), "{fields}: {why:?}");
        assert_eq!(why.code.as_deref(), Some("unsupported_parameter"), "{fields}: {why:?}");
    }
}

#[test]
fn what_is_wrong_is_named() {
    for (fields, param) in [
        (json!({ "temperature": "hot" }), "temperature"),
        (json!({ "stream": 1 }), "stream"),
        (json!({ "messages": "hi" }), "messages"),
        (json!({ "messages": null }), "messages"),
        (json!({ "messages": [user("")] }), "messages[0].content"),
        (json!({ "messages": [user("hi"), { "role": "function", "content": "x" }] }), "messages[1].role"),
        (
            json!({ "messages": [{ "role": "tool", "tool_call_id": "x", "content": "y" }] }),
            "messages[0].tool_call_id",
        ),
        (json!({ "messages": [{ "role": "tool", "content": "y" }] }), "messages[0].tool_call_id"),
        (json!({ "response_format": { "type": "json_schema" } }), "response_format"),
        (json!({ "metadata": { "conversation_id": "a b" } }), "metadata"),
        (json!({ "everturn": { "wait": true } }), "everturn"),
    ] {
        let why = read(&with(fields.clone())).unwrap_err();
        assert_eq!(
            (why.status, why.param.as_deref(), why.code.as_deref()),
            (400, Some(param), Some("invalid_value")),
            "{fields}: {why:?}"
        );
    }
    for body in ["", "[]", "{", "\"x\"", "{} {}", "null"] {
        let why = ChatRequest::read(body.as_bytes(), None).unwrap_err();
        assert_eq!((why.status, why.param), (400, None), "{body}");
    }
    let long = with(json!({ "messages": vec![user("hi"); 10_001] }));
    assert!(read(&long).unwrap_err().message.contains("more than 10000 entries"));
    let huge = with(json!({ "messages": [{ "role": "x".repeat(100_000), "content": "" }] }));
    assert!(read(&huge).unwrap_err().message.len() < 200);
}

#[test]
fn a_turn_that_nobody_can_come_back_to_ends_with_its_client() {
    let plain = read(&with(json!({}))).unwrap();
    assert!(plain.stops_on_disconnect(false) && !plain.stops_on_disconnect(true));
    assert_eq!((plain.send.ephemeral, plain.send.conversation_id), (Some(true), None));
    let named = read(&with(json!({ "metadata": { "conversation_id": "c" } }))).unwrap();
    assert!(!named.stops_on_disconnect(false) && named.send.approvals.is_none());
    assert_eq!((named.send.ephemeral, named.send.conversation_id), (Some(false), Some("c".into())));
    let asked = json!({ "everturn": { "onDisconnect": "continue", "text": "hold", "retry": { "afterContent": "rewind" } } });
    let asked = read(&with(asked)).unwrap();
    assert!(!asked.stops_on_disconnect(false) && asked.holds_text && asked.send.retry.is_some());
    assert_eq!(asked.on_disconnect, Some(OnDisconnect::Continue));
}

#[test]
fn a_header_may_name_the_conversation() {
    let body = with(json!({ "metadata": { "conversation_id": "c" } })).to_string();
    let plain = with(json!({})).to_string();
    let id = |body: &str, header| {
        ChatRequest::read(body.as_bytes(), header).map(|request| request.send.conversation_id)
    };
    assert_eq!(id(&plain, Some("h")), Ok(Some("h".into())));
    assert_eq!(id(&body, Some("c")), Ok(Some("c".into())));
    assert!(id(&body, Some("h")).unwrap_err().message.contains("different conversations"));
}

#[test]
fn what_has_no_effect_is_named() {
    let request = json!({
        "model": "m", "user": "ada", "store": false, "logit_bias": {}, "service_tier": "flex", "top_k": 40,
        "include_reasoning": false, "thinking_budget": 0,
        "stream_options": { "include_usage": true, "include_obfuscation": true },
        "messages": [
            { "role": "user", "name": "ada", "content": [
                { "type": "text", "text": "hi", "cache_control": { "type": "ephemeral" } },
                { "type": "image_url", "image_url": { "url": "https://x/y.png", "detail": "low" } },
            ] },
            { "role": "user", "content": "so?", "audio": null },
        ],
        "tools": [{ "type": "function", "function": { "name": "f", "strict": true,
            "parameters": { "type": "object", "strict": true } } }],
        "a b,\r\n": 1,
    });
    let named = [
        "a?b???",
        "include_reasoning",
        "messages[].content[].cache_control",
        "messages[].content[].image_url.detail",
        "messages[].name",
        "service_tier",
        "stream_options.include_obfuscation",
        "thinking_budget",
        "tools[].function.strict",
        "top_k",
        "user",
    ];
    assert_eq!(read(&request).unwrap().ignored, named);
    let many: serde_json::Map<_, _> =
        (0..1000).map(|at| (at.to_string() + &"x".repeat(200), json!(1))).collect();
    let many = read(&with(Value::Object(many))).unwrap().ignored;
    assert!(many.len() <= 33 && many.iter().all(|name| name.len() <= 96), "{many:?}");
    assert_eq!(many[0], "...");
}

#[test]
fn keys_parts_and_past_arguments_stay_as_they_came() {
    let body = r#"{"model":"m","messages":[
        {"role":"system","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]},
        {"role":"user","content":"hi"},
        {"role":"assistant","content":[{"type":"text","text":"c"},{"type":"text","text":"d"}],"tool_calls":[
            {"id":"1","type":"function","function":{"name":"f","arguments":"{\"z\": 1.50, \"a\": 2}"}},
            {"id":"2","type":"function","function":{"name":"f","arguments":"{\"z\":1,\"a\":2}"}}]},
        {"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"e"},{"type":"text","text":"f"}]},
        {"role":"tool","tool_call_id":"2","content":"g"}],
        "tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"why":{},"answer":{}}}}}]}"#;
    let request = ChatRequest::read(body.as_bytes(), None).unwrap();
    let tools = serde_json::to_string(&request.send.tools).unwrap();
    assert!(tools.contains(r#"{"type":"object","properties":{"why":{},"answer":{}}}"#), "{tools}");
    let messages = serde_json::to_value(&request.send.messages).unwrap();
    let texts = |at: usize, from: usize| {
        let chunks = messages[at]["chunks"].as_array().unwrap().iter();
        chunks.filter_map(|chunk| chunk["text"].as_str().map(str::to_owned)).skip(from).collect::<Vec<_>>()
    };
    assert_eq!((texts(0, 0), texts(2, 0)), (vec!["a".into(), "b".into()], vec!["c".into(), "d".into()]));
    assert_eq!(messages[3]["chunks"][0]["content"], "e\n\nf");
    let calls = [&messages[2]["chunks"][2], &messages[2]["chunks"][3]];
    assert_eq!(calls[0]["echo"], json!({ "origin": "arguments", "data": r#"{"z": 1.50, "a": 2}"# }));
    assert_eq!((calls[1].get("echo"), calls[1]["input"].to_string()), (None, r#"{"z":1,"a":2}"#.to_owned()));
}

#[test]
fn who_has_seen_nothing_is_owed_a_whole_answer() {
    let is_whole = |fields| read(&with(fields)).unwrap().is_whole();
    assert!(is_whole(json!({})) && is_whole(json!({ "stream": true, "everturn": { "text": "hold" } })));
    assert!(!is_whole(json!({ "stream": true })));
}

#[test]
fn nothing_is_added_unless_it_is_asked_for() {
    let bare = |fields| read(&with(fields)).unwrap().bare;
    assert!(bare(json!({})) && bare(json!({ "everturn": { "text": "hold" } })));
    assert!(!bare(json!({ "everturn": { "agent": true } })));
    let named = json!({ "conversation_id": "c" });
    assert!(!bare(json!({ "metadata": named })));
    assert!(bare(json!({ "metadata": named, "everturn": { "agent": false } })));
    // An empty list is an answer to which tools there are.
    assert_eq!(read(&with(json!({ "tools": [] }))).unwrap().send.tools, Some(Vec::new()));
}
