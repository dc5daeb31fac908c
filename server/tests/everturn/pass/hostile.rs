//! What a provider cannot make Everturn do.

use super::*;

#[tokio::test]
async fn answers_of_calls_count_towards_the_memory_of_all() {
    let large = Reply::json(200, &json!({ "content": "x".repeat(24 << 20) }));
    let provider = Loopback::with(move |_| large.clone()).await;
    let server =
        messages_home(&provider, SHORT, "[memory]\nconversation_mib = 16\ntotal_mib = 16\n").serve().await;
    let body = r#"{"model":"claude-a","messages":[],"max_tokens":5}"#;
    let answer = ask(&server, "/v1/messages", &[], body).await;
    assert_ne!(answer.status, 200);
    let error = answer.text().await;
    assert!(error.len() < 1_000 && error.contains("16 MiB"), "{error}");
    calls_until(&server, <[Value]>::is_empty).await;
}
