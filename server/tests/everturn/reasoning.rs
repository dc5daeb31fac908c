//! Encrypted reasoning is sent back to its provider: in the next step, in the next turn, after a restart.

use everturn_sim::{Loopback, Reply};
use serde_json::{Value, json};

use crate::{
    client::{get, ndjson, post},
    home::{Home, SHORT, Server},
};

/// Returns an answer of the Responses API with these items.
fn answer(items: &[Value]) -> Reply {
    let event = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
    let items = items.iter().zip(0..).flat_map(|(item, place)| {
        ["added", "done"].map(|what| json!({"type": format!("response.output_item.{what}"), "output_index": place, "item": item}))
    });
    let end = json!({"type": "response.completed", "response": {"status": "completed"}});
    Reply::sse(items.chain([end]).map(|payload| event(&payload)))
}

fn thought(name: &str) -> Value {
    let summary = json!([{"type": "summary_text", "text": format!("thought {name}")}]);
    json!({"type": "reasoning", "id": name, "summary": summary, "encrypted_content": format!("secret of {name}")})
}

fn said(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

fn repeated(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": text})
}

fn heard(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// Returns a home with dice and one model of the Responses API.
fn home(provider: &Loopback) -> Home {
    Home::with(&format!(
        "[tools]\ndice = true\n[retry]\n{SHORT}\n[[provider]]\nname = \"sim\"\nkind = \"openai-responses\"\n\
         base_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        provider.base_url()
    ))
}

async fn turn(server: &Server, message: &str) -> Vec<Value> {
    let message = json!({ "conversationId": "c1", "message": message });
    ndjson(post(server, "/chat?extensions=true", &message).await).await
}

#[tokio::test]
async fn it_is_returned_before_the_output_it_led_to() {
    let call = json!({"type": "function_call", "call_id": "call_1", "name": "roll_dice", "arguments": "{}"});
    let provider = Loopback::start([
        answer(&[thought("r1"), call.clone()]),
        answer(&[thought("r2"), said("They rolled.")]),
        answer(&[thought("r3"), said("Again.")]),
    ])
    .await;
    let home = home(&provider);
    let mut server = home.serve().await;
    let mut events = turn(&server, "roll").await;
    server.child.kill().await.unwrap();
    let server = home.serve().await;
    events.extend(turn(&server, "once more").await);

    let sent: Vec<Value> = provider.requests().iter().map(|request| request.json().unwrap()).collect();
    assert!(sent.iter().all(|request| request["store"] == false), "nothing is stored there");
    let history = get(&server, "/conversations/c1").await.json().await;
    let chunks = history["chunks"].as_array().unwrap();
    let result = chunks.iter().find(|stored| stored["chunk"]["type"] == "tool-result").unwrap();
    let content = &result["chunk"]["content"];
    let output = json!({"type": "function_call_output", "call_id": "call_1", "output": content});
    let inputs = [
        vec![heard("roll")],
        vec![heard("roll"), thought("r1"), call, output],
        vec![thought("r2"), repeated("They rolled."), heard("once more")],
    ];
    assert_eq!(sent.len(), inputs.len());
    assert_eq!(sent[0]["input"], json!(inputs[0]));
    assert_eq!(sent[1]["input"], json!(inputs[1]));
    assert_eq!(sent[2]["input"], json!(inputs[1..].concat()), "after a restart");
    let shown = json!(events).to_string();
    assert!(
        shown.contains("thought r3") && !shown.contains("secret of"),
        "nobody who watches is told: {shown}"
    );
}

#[tokio::test]
async fn a_conversation_outlives_a_provider_that_refuses_its_reasoning() {
    let error = json!({"message": "could not be verified", "type": "invalid_request_error", "code": "invalid_encrypted_content"});
    let provider = Loopback::start([
        answer(&[thought("r1"), said("One.")]),
        Reply::json(400, &json!({ "error": error })),
        answer(&[thought("r2"), said("Two.")]),
        answer(&[said("Three.")]),
    ])
    .await;
    let server = home(&provider).serve().await;
    for (message, waits) in [("one", 0), ("two", 1), ("three", 0)] {
        let events = turn(&server, message).await;
        let of = |kind: &'static str| events.iter().filter(move |event| event["type"] == kind);
        assert_eq!(of("provider-retry").count(), waits, "{message}");
        assert!(of("done").all(|done| done["reason"] == "stop"), "{message}: {events:?}");
    }
    let sent = provider.requests().into_iter().map(|request| request.json().unwrap()["input"].clone());
    let encrypted: Vec<usize> = sent.map(|input| input.to_string().matches("secret of").count()).collect();
    assert_eq!(encrypted, [0, 1, 0, 1], "the refused one never again, a later one as ever");
}
