//! The documents match what is served.

use axum::body::Body;
use everturn_wire::Value;
use hyper::{Method, StatusCode};
use serde_json::json;

use crate::{
    client::{call, get, post, request},
    world,
};

#[tokio::test]
async fn documents_are_served() {
    let world = world().await;
    for (path, field) in
        [("/openapi.json", "openapi"), ("/asyncapi.json", "asyncapi"), ("/schema.json", "$defs")]
    {
        let document: Value = get(world.address, path).await.json().await;
        assert!(document.get(field).is_some(), "{path}");
    }
}

#[tokio::test]
async fn every_described_call_is_served_with_its_type() {
    let mut world = world().await;
    let stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    stream.text().await;
    let other = post(world.address, "/chat", json!({ "conversationId": "d", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    other.text().await;
    let figures = get(world.address, "/conversations/c/metrics").await.json().await;
    let turn = figures["turns"][0]["turnId"].as_str().unwrap();
    let document: Value = get(world.address, "/openapi.json").await.json().await;
    let mut calls = 0;
    // Those of the server itself are not served here.
    let is_ours = |path: &str| !path.starts_with("/callers") && path != "/audit";
    for (path, item) in document["paths"].as_object().unwrap().iter().filter(|(path, _)| is_ours(path)) {
        for (method, operation) in item.as_object().unwrap() {
            let path = path
                .replace("{id}", "c")
                .replace("{chatId}", "c")
                .replace("{threadId}", "c")
                .replace("{agentId}", "default")
                .replace("{messageId}", "m")
                .replace("{tool}", "t")
                .replace("{turnId}", turn);
            let method: Method = method.to_uppercase().parse().unwrap();
            // The other calls are about an existing conversation.
            let deletes = method == Method::DELETE && path == "/conversations/c";
            let path = if deletes { "/conversations/d".to_owned() } else { path };
            let tries_again = method == Method::POST && path.ends_with("/retry");
            let summarizes = path.ends_with("/compact");
            let body = if operation["requestBody"].is_null() {
                Body::empty()
            } else {
                let all = json!({
                    "message": "Hi", "text": "Hi", "turnId": "none", "enabled": true, "title": "Hi",
                    "stepId": "none#0", "toolCallId": "none", "verdict": "denied",
                    "questionId": "none", "action": "decline",
                });
                Body::from(all.to_string())
            };
            let request = request(method, world.address, &path).header("content-type", "application/json");
            let answer = call(world.address, request.body(body).unwrap()).await;
            let refusal = match path.as_str() {
                // The turn ended well.
                _ if tries_again => Some(StatusCode::CONFLICT),
                // There is nothing before the last exchange.
                _ if summarizes => Some(StatusCode::CONFLICT),
                // The request body is described elsewhere.
                "/v1/chat/completions"
                | "/api/chat"
                | "/ag-ui"
                | "/copilotkit"
                | "/copilotkit/agent/default/run"
                | "/copilotkit/agent/default/connect" => Some(StatusCode::BAD_REQUEST),
                // No call is passed through.
                "/calls/c/retry-now" | "/calls/c/give-up" => Some(StatusCode::NOT_FOUND),
                // No turn is running.
                "/api/chat/c/stream" => Some(StatusCode::NO_CONTENT),
                _ => None,
            };
            if let Some(refusal) = refusal {
                assert_eq!(answer.status, refusal, "{path}");
                calls += 1;
                continue;
            }
            assert!(answer.status.is_success(), "{path}: {}", answer.status);
            let types = operation["responses"]["200"]["content"].as_object().unwrap();
            let served = answer.header("content-type");
            assert!(types.keys().any(|kind| served.starts_with(kind)), "{path}: {served} is not {types:?}");
            calls += 1;
        }
    }
    assert_eq!(calls, 54);
}
