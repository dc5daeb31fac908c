//! Refused requests: each has a status, and an error in this API's native format.

use axum::body::Body;
use hyper::Method;
use serde_json::json;

use crate::{
    client::{call, post, request},
    world,
};

const JSON: &str = "application/json";

#[tokio::test]
async fn whatever_is_wrong_is_said() {
    let mut world = world().await;
    let stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    let held = world.call().await;
    let long = "x".repeat(5000);
    let long_model = json!({ "message": "Hi", "model": long }).to_string();
    let long_path = format!("/{long}");
    let table: &[(&str, &str, &str, &str, u16, &str)] = &[
        ("POST", "/chat", JSON, "{", 400, "EOF"),
        ("POST", "/chat", JSON, "", 400, "EOF"),
        ("POST", "/chat", JSON, "\u{feff}{}", 400, "line 1"),
        ("POST", "/chat", JSON, "[]", 422, "must be a JSON object"),
        ("POST", "/chat", JSON, " \"text\"", 422, "must be a JSON object"),
        ("POST", "/chat", JSON, "{}", 400, "it is empty"),
        ("POST", "/chat", JSON, r#"{"message":7}"#, 422, "message"),
        ("POST", "/chat", JSON, r#"{"message":""}"#, 400, "it is empty"),
        ("POST", "/chat", "text/plain", r#"{"message":"Hi"}"#, 415, "Content-Type"),
        ("POST", "/chat", "", r#"{"message":"Hi"}"#, 415, "Content-Type"),
        ("POST", "/chat", JSON, r#"{"message":"Hi","conversationId":"c"}"#, 409, "busy with a turn"),
        ("POST", "/chat", JSON, r#"{"message":"Hi","conversationId":"a/b"}"#, 400, "not valid"),
        ("POST", "/chat", JSON, r#"{"message":"Hi","conversationId":""}"#, 400, "not valid"),
        ("POST", "/chat", JSON, r#"{"message":"Hi","model":"no/such"}"#, 400, "test/small, test/large"),
        ("POST", "/chat", JSON, &long_model, 400, "test/small, test/large"),
        ("POST", "/chat?extensions=yes", JSON, r#"{"message":"Hi"}"#, 400, "true or false"),
        ("GET", "/chat", "", "", 405, "/chat does not take GET"),
        ("DELETE", "/conversations", "", "", 405, "does not take DELETE"),
        ("POST", "/conversations/c", "", "", 405, "does not take POST"),
        ("GET", "/conversations/c/stop", "", "", 405, "does not take GET"),
        ("PUT", "/health", "", "", 405, "does not take PUT"),
        ("GET", "/nowhere", "", "", 404, "/openapi.json"),
        ("GET", "/conversations/c/nowhere", "", "", 404, "not found: /conversations/c/nowhere"),
        ("GET", &long_path, "", "", 404, "not found: "),
        ("GET", "/conversations/x", "", "", 404, "no conversation x"),
        ("GET", "/conversations/x/status", "", "", 404, "no conversation x"),
        ("GET", "/conversations/x/metrics", "", "", 404, "no conversation x"),
        ("GET", "/conversations/x/turns/t", "", "", 404, "no conversation x"),
        ("GET", "/conversations/c/turns/t", "", "", 404, "conversation c has no turn t"),
        ("GET", "/conversations/x/attempts", "", "", 404, "no conversation x"),
        ("GET", "/conversations/c/attempts?limit=x", "", "", 400, "limit must be a whole number"),
        ("GET", "/conversations/x/events", "", "", 404, "no conversation x"),
        ("GET", "/conversations/a%20b/status", "", "", 400, "not valid"),
        ("GET", "/conversations/%ff/status", "", "", 400, "UTF-8"),
        ("GET", "/conversations/c/events?cursor=x", "", "", 400, "not a valid cursor"),
        ("GET", "/conversations/c/events?cursor=", "", "", 400, "not a valid cursor"),
        ("GET", "/conversations/c/events?cursor=-1", "", "", 400, "not a valid cursor"),
        ("GET", "/conversations/c/events?cursor=+1", "", "", 400, "not a valid cursor"),
        ("GET", "/conversations/c/events?cursor=1&cursor=2", "", "", 400, "twice"),
        ("GET", "/conversations/c/events?extensions=1", "", "", 400, "true or false"),
        ("POST", "/conversations/x/stop", "", "", 404, "no conversation x"),
        ("POST", "/conversations/x/close", "", "", 404, "no conversation x"),
        ("POST", "/conversations/x/retry/now", "", "", 404, "no conversation x"),
        ("POST", "/conversations/x/retry/abort", "", "", 404, "no conversation x"),
        ("POST", "/conversations/x/queue", JSON, r#"{"text":"Hi"}"#, 404, "no conversation x"),
        ("POST", "/conversations/c/queue", JSON, r#"{"text":" "}"#, 400, "it is empty"),
        ("POST", "/conversations/c/queue", JSON, r#"{"message":"Hi"}"#, 422, "missing field `text`"),
        ("POST", "/conversations/c/queue", JSON, r#"{"text":"Hi","messageId":""}"#, 400, "messageId"),
        ("DELETE", "/conversations/x/queue/m", "", "", 404, "no conversation x"),
    ];
    for (method, path, content_type, body, status, why) in table {
        let mut request = request(method.parse::<Method>().unwrap(), world.address, path);
        if !content_type.is_empty() {
            request = request.header("content-type", *content_type);
        }
        let answer = call(world.address, request.body(Body::from((*body).to_owned())).unwrap()).await;
        let name = format!("{method} {} {body:.60}", &path[..path.len().min(60)]);
        assert_eq!(answer.status.as_u16(), *status, "{name}");
        assert_eq!(answer.headers.contains_key("allow"), *status == 405, "{name}");
        let error = answer.error().await;
        assert!(error.contains(why) && error.len() <= 1100, "{name}: {error}");
    }
    held.answer("Hello");
    assert!(stream.text().await.contains(r#""reason":"stop""#));
}

#[tokio::test]
async fn the_last_event_id_must_be_one_of_ours() {
    let mut world = world().await;
    let stream = post(world.address, "/chat", json!({ "conversationId": "c", "message": "Hi" })).await;
    world.call().await.answer("Hello");
    stream.text().await;
    for (bad, path) in [
        ("x", "/conversations/c/events"),
        ("", "/conversations/c/events?cursor=0"),
        ("\u{e4}", "/conversations/c/events"),
    ] {
        let request = request(Method::GET, world.address, path).header("last-event-id", bad.as_bytes());
        let answer = call(world.address, request.body(Body::empty()).unwrap()).await;
        assert_eq!(answer.status, 400, "{bad:?}");
        assert!(answer.error().await.contains("not a valid cursor"));
    }
}
