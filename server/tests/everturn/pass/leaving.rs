//! What is counted of answers that their clients leave.

use super::*;
use doors::server;

const GEMINI: &str = "/v1beta/models/gemini-x:streamGenerateContent?alt=sse";
const CHAT: &str = "/v1/chat/completions";

fn chunk(of: &Value) -> String {
    format!("data: {of}\n\n")
}

/// Reads two events of an answer, to the one that contains this, leaves, and returns what is counted. `has_rest`: the call waits
/// for the rest.
async fn used(path: &str, chunks: &[Value], until: &str, has_rest: bool) -> Value {
    let gate = everturn_sim::Gate::new();
    let provider = Loopback::start([Reply::sse(chunks.iter().map(chunk)).stall_before(2, &gate)]).await;
    let server = server(&provider, SHORT, "").await;
    let body = r#"{"model":"gpt-a","stream":true,"messages":[]}"#;
    let mut response = ask(&server, path, &[], body).await;
    while !response.line().await.expect("the line comes").contains(until) {}
    assert_eq!(response.line().await.as_deref(), Some(""), "the end of the event");
    drop(response);
    if has_rest {
        calls_until(&server, |calls| calls.first().is_some_and(|call| call["listeners"] == 0)).await;
        gate.open();
    }
    calls_until(&server, <[Value]>::is_empty).await;
    let total = get(&server, "/usage").await.json().await["total"].clone();
    json!([total["requests"], total["inputTokens"], total["outputTokens"]])
}

fn text(text: &str, tokens: u64) -> Value {
    json!({ "candidates": [{ "content": { "parts": [{ "text": text }] } }],
        "usageMetadata": { "promptTokenCount": 5, "candidatesTokenCount": tokens } })
}

#[tokio::test]
async fn an_answer_of_gemini_counts_as_far_as_its_client_took_it() {
    let chunks = [text("one", 1), text("two", 3), text("three", 9)];
    assert_eq!(used(GEMINI, &chunks, "two", false).await, json!([1, 5, 3]));
}

#[tokio::test]
async fn what_comes_after_the_reason_of_an_answers_end_is_counted() {
    let end =
        json!({ "candidates": [{ "content": { "parts": [{ "text": "two" }] }, "finishReason": "STOP" }] });
    let counts = json!({ "usageMetadata": { "promptTokenCount": 5, "candidatesTokenCount": 7 } });
    assert_eq!(used(GEMINI, &[text("one", 1), end, counts], "STOP", true).await, json!([1, 5, 7]));
    let choice = |delta: Value, reason: Value| json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }], "usage": null });
    let chunks = [
        choice(json!({ "content": "one" }), Value::Null),
        choice(json!({}), json!("stop")),
        json!({ "choices": [], "usage": { "prompt_tokens": 3, "completion_tokens": 4 } }),
    ];
    assert_eq!(used(CHAT, &chunks, "\"stop\"", true).await, json!([1, 3, 4]));
}
