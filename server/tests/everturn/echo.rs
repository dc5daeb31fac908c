//! A model's signatures are sent back to it, and to nobody else.

use everturn_sim::{Loopback, Reply, chat};
use serde_json::{Value, json};

use crate::{
    client::{ndjson, post},
    home::{Home, Server},
};

const SIGNATURE: &str = "c2lnbmVkIGJ5IHRoZSBtb2RlbA==";

/// Returns an answer of Gemini's API in one event.
fn answer(part: &Value) -> Reply {
    let candidate =
        json!({"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0});
    Reply::sse([format!("data: {}\n\n", json!({ "candidates": [candidate] }))])
}

/// Runs a turn of the conversation to its end.
async fn turn(server: &Server, model: &str) -> Vec<Value> {
    let asked = json!({ "conversationId": "c", "message": "Roll two dice.", "model": model });
    let events = ndjson(post(server, "/chat", &asked).await).await;
    let done = events.iter().find(|event| event["type"] == "done").unwrap();
    assert_eq!(done["reason"], "stop", "{events:?}");
    events
}

#[tokio::test]
async fn a_signature_is_returned_with_its_call_and_only_to_its_model() {
    let call = json!({
        "functionCall": {"id": "g-1", "name": "roll_dice", "args": {"sides": 6, "count": 2}},
        "thoughtSignature": SIGNATURE,
    });
    let said = answer(&json!({"text": "They fell off the table."}));
    let gemini = Loopback::start([answer(&call), said]).await;
    let other = Loopback::start([chat::text(["So they did."]).reply()]).await;
    let home = Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[tools]\ndice = true\n\
         [[provider]]\nname = \"signing\"\nkind = \"gemini\"\nbase_url = \"{}/v1beta\"\nmodels = [\"one\", \"two\"]\n\
         [[provider]]\nname = \"other\"\nbase_url = \"{}/v1\"\nmodels = [\"model\"]\n",
        gemini.base_url(),
        other.base_url(),
    ));
    let server = home.serve().await;
    let mut events = Vec::new();
    for model in ["signing/one", "other/model", "signing/two", "signing/one"] {
        events.extend(turn(&server, model).await);
    }

    let asked: Vec<Value> = gemini.requests().iter().map(|request| request.json().unwrap()).collect();
    let [first, second, by_another, again] = &asked[..] else { panic!("asked {} times", asked.len()) };
    assert_eq!(first["contents"].as_array().unwrap().len(), 1);
    for later in [second, again] {
        assert_eq!(later["contents"][1], json!({"role": "model", "parts": [call]}), "as it came");
        let result = &later["contents"][2]["parts"][0]["functionResponse"];
        assert_eq!((&result["id"], &result["name"]), (&json!("g-1"), &json!("roll_dice")));
        assert_eq!(later.to_string().matches("thoughtSignature").count(), 1);
    }
    let unsigned = &by_another["contents"][1]["parts"][0];
    assert_eq!(unsigned["thoughtSignature"], "skip_thought_signature_validator", "another model's");

    let elsewhere = other.requests()[0].json().unwrap().to_string();
    assert!(elsewhere.contains("roll_dice") && !elsewhere.contains(SIGNATURE), "{elsewhere}");
    assert!(!json!(events).to_string().contains(SIGNATURE), "it is nothing to show");
}
