//! A key that a provider rejected is not sent again in vain.

use everturn_sim::{Loopback, Reply, Request, chat};
use hyper::Method;
use serde_json::{Value, json};

use crate::{
    client::{Response, ndjson, post, send},
    home::{Home, Server},
};

const OLD: &str = "sk-old-0123456789abcdef";
const NEW: &str = "sk-new-0123456789abcdef";

/// Answers who has the new key, and lists models to everybody.
fn vendor(request: &Request) -> Reply {
    if request.path == "/v1/models" {
        return Reply::json(200, &json!({ "data": [{ "id": "m", "created": 1 }] }));
    }
    match request.header("authorization") == Some(&format!("Bearer {NEW}")) {
        true => chat::text(["Hello."]).reply(),
        false => Reply::json(401, &json!({ "error": { "message": "Incorrect API key provided." } })),
    }
}

async fn chat(server: &Server) -> Vec<Value> {
    ndjson(post(server, "/chat", &json!({ "message": "hi", "model": "mine/m" })).await).await
}

/// Passes a request through to a provider, with a key of the caller.
async fn pass(server: &Server, provider: &str, key: &str) -> Response {
    let bearer = format!("Bearer {key}");
    let headers = [("content-type", "application/json"), ("authorization", &bearer)];
    let path = format!("/p/{provider}/v1/chat/completions");
    send(server, Method::POST, &path, &headers, r#"{"model":"m","messages":[]}"#.to_owned()).await
}

#[tokio::test]
async fn a_rejected_key_is_not_sent_again_until_it_is_replaced() {
    let provider = Loopback::with(vendor).await;
    let url = format!("{}/v1", provider.base_url());
    let home = Home::with(&format!(
        "[[provider]]\nname = \"theirs\"\nbase_url = \"{url}\"\ncredential = \"client\"\nmodels = [\"m\"]\n"
    ));
    let server = home.serve().await;
    let added = |key: &str| json!({ "vendor": "openai-compatible", "name": "mine", "baseUrl": url, "key": key, "anyway": true });
    assert_eq!(post(&server, "/providers", &added(OLD)).await.status, 201);

    let first = chat(&server).await;
    let asked = provider.counts().requests;
    let second = chat(&server).await;
    let error = |events: &[Value]| events.iter().find(|event| event["type"] == "error").unwrap().clone();
    let (first, second) = (error(&first), error(&second));
    assert_eq!((&first["message"], &first["code"]), (&second["message"], &second["code"]));
    assert!(second["advice"].as_str().unwrap().contains("It is not sent again for"), "{second}");
    // So does a call that is passed through with the server's key.
    let passed = pass(&server, "mine", NEW).await;
    assert_eq!(passed.status, 401);
    let said = passed.text().await;
    assert!(said.contains("Incorrect API key provided.") && said.contains("not sent again"), "{said}");
    assert_eq!(provider.counts().requests, asked, "nothing was sent");

    // A caller's own key is the provider's to judge, each time.
    for sent in 1..3 {
        assert_eq!(pass(&server, "theirs", OLD).await.status, 401);
        assert_eq!(provider.counts().requests, asked + sent);
    }
    assert_eq!(pass(&server, "theirs", NEW).await.status, 200);

    assert_eq!(post(&server, "/providers", &added(NEW)).await.status, 201);
    let text = chat(&server).await;
    assert!(text.iter().any(|event| event["delta"] == "Hello."), "{text:?}");
    assert_eq!(pass(&server, "mine", OLD).await.status, 200);
}
