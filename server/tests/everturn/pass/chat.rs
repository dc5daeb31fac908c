//! The Chat Completions door: what passes through it, and what becomes a turn.

use super::*;

const CHAT: &str = "/v1/chat/completions";

const ROUTES: &str = "[[route]]\nname = \"same\"\ntargets = [\"chat/gpt-a\", \"chat/gpt-b\"]\n\
    [[route]]\nname = \"mixed\"\ntargets = [\"chat/gpt-a\", \"claude/claude-a\"]\n\
    [[provider]]\nname = \"chat\"\nbase_url = \"URL/v1\"\nmodels = [\"gpt-a\", \"gpt-b\", \"both\"]\n\
    [[provider]]\nname = \"responses\"\nkind = \"openai-responses\"\nbase_url = \"URL/v1\"\nmodels = [\"o-a\", \"both\"]\n\
    [[provider]]\nname = \"claude\"\nkind = \"anthropic\"\nbase_url = \"URL\"\napi_key = \"k-12345678\"\nmodels = [\"claude-a\"]\n";

async fn server(provider: &Loopback, retry: &str) -> Server {
    let config = ROUTES.replace("URL", &provider.base_url());
    Home::with(&format!("[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{retry}\n{config}"))
        .serve()
        .await
}

/// A request that no translation would leave as it is.
fn body(model: &str) -> String {
    format!(
        r#"{{ "z":1.0, {model} "messages":[{{"role":"user","content":"hü"}}], "n":2,"tools":[{{"b":1,"a":2}}] }}"#
    )
}

#[tokio::test]
async fn a_request_that_asks_for_nothing_of_ours_passes() {
    let answer =
        Reply::json(200, &json!({ "z": 1, "choices": [{ "index": 0 }], "system_fingerprint": "fp" }));
    let provider = Loopback::start([answer.clone()]).await;
    let server = server(&provider, SHORT).await;
    for (asked, sent) in [
        ("gpt-a", "gpt-a"),
        ("unheard-of", "unheard-of"),
        ("vendor/unheard-of", "vendor/unheard-of"),
        ("both", "both"),
        ("chat/gpt-b", "gpt-b"),
        ("chat/unheard-of", "unheard-of"),
        ("route/same", "gpt-a"),
    ] {
        let model = |name: &str| format!("\"model\" : \"{name}\",");
        let response = ask(&server, CHAT, &[], &body(&model(asked))).await;
        assert_eq!(response.status, 200, "{asked}");
        assert_eq!(response.text().await.as_bytes(), answer.body_bytes(), "{asked}");
        let seen = provider.requests().pop().unwrap();
        assert_eq!((&*seen.path, &*seen.body), (CHAT, body(&model(sent)).as_bytes()), "{asked}");
    }
}

#[tokio::test]
async fn what_asks_for_something_of_ours_becomes_a_turn() {
    let answer = Reply::sse([
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n",
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data: [DONE]\n\n",
    ]);
    let provider = Loopback::start([answer]).await;
    let server = server(&provider, SHORT).await;
    let body = |more: &str| format!(r#"{{{more} "messages":[{{"role":"user","content":"hi"}}]}}"#);
    for (headers, more) in [
        (&[][..], r#""model":"gpt-a","everturn":{},"#),
        (&[], r#""model":"gpt-a","metadata":{"conversation_id":"a"},"#),
        (&[("x-conversation-id", "b")], r#""model":"gpt-a","#),
        (&[("idempotency-key", "c")], r#""model":"gpt-a","#),
        // The server's default model.
        (&[], ""),
    ] {
        let response = ask(&server, CHAT, headers, &body(more)).await;
        assert_eq!(response.status, 200, "{more}");
        let told = response.json().await;
        assert_eq!(told["choices"][0]["message"]["content"], "hi", "{told}");
        let seen: Value = serde_json::from_slice(&provider.requests().pop().unwrap().body).unwrap();
        assert_eq!((&seen["stream"], &seen["model"]), (&json!(true), &json!("gpt-a")), "{more}");
    }
    // Nothing is left out of a route, and a provider that speaks another protocol is spoken to in its own.
    for (asked, path) in [
        ("route/mixed", CHAT),
        ("responses/o-a", "/v1/responses"),
        ("o-a", "/v1/responses"),
        ("responses/both", "/v1/responses"),
        ("claude-a", "/v1/messages"),
        ("claude/claude-a", "/v1/messages"),
    ] {
        ask(&server, CHAT, &[], &body(&format!("\"model\":\"{asked}\","))).await.text().await;
        let seen = provider.requests().pop().unwrap();
        let told: Value = serde_json::from_slice(&seen.body).unwrap();
        assert_eq!((&*seen.path, &told["stream"]), (path, &json!(true)), "{asked}");
    }
    let before = provider.counts().requests;
    for asked in ["route/unknown", "claude/unheard-of"] {
        let response = ask(&server, CHAT, &[], &body(&format!("\"model\":\"{asked}\","))).await;
        assert_eq!(
            (response.status, response.json().await["error"]["code"].take()),
            (404, json!("model_not_found"))
        );
    }
    assert_eq!(provider.counts().requests, before);
}

#[tokio::test]
async fn failures_are_waited_out_and_final_ones_are_the_providers() {
    let full = json!({ "error": { "message": "maximum context length", "code": "context_length_exceeded", "z": 1 } });
    let busy = Reply::json(529, &json!({ "error": { "message": "busy" } }));
    let parts = ["data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\n", "data: [DONE]\n\n"];
    let stream = Reply::sse(parts);
    let cut = stream.clone().cut_at(parts[0].len());
    let denied = json!({ "error": "no" });
    for (status, last) in [(400, Reply::json(400, &full)), (401, Reply::json(401, &denied)), (200, stream)] {
        let provider = Loopback::start([busy.clone(), cut.clone(), last.clone()]).await;
        let server = server(&provider, "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 3").await;
        let asked = body("\"model\":\"gpt-a\",\"stream\":true,");
        let response = ask(&server, CHAT, &[], &asked).await;
        assert_eq!(response.status, status);
        assert_eq!(response.text().await.as_bytes(), last.body_bytes());
        assert_eq!(provider.requests().iter().filter(|seen| seen.body == asked.as_bytes()).count(), 3);
    }
}

#[tokio::test]
async fn the_headers_that_control_a_call_also_control_a_turn() {
    let asked =
        r#"{"model":"gpt-a","everturn":{},"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let long = Reply::json(429, &json!({ "error": { "message": "m" } })).header("retry-after", "3600");
    let provider = Loopback::start([long]).await;
    let server = server(&provider, LONG).await;
    let refused = ask(&server, CHAT, &[("everturn-budget", "10m")], asked).await;
    assert_eq!((refused.status, provider.counts().requests), (429, 1));
    for header in [("everturn-budget", "soon"), ("everturn-quota", "x"), ("everturn-priority", "x")] {
        let response = ask(&server, CHAT, &[header], asked).await;
        assert_eq!(response.status, 400);
        assert!(response.json().await["error"]["message"].as_str().unwrap().contains(header.0));
    }
    assert_eq!(provider.counts().requests, 1);
}

#[tokio::test]
async fn a_turns_answer_is_held_if_a_header_asks_for_it() {
    let asked =
        r#"{"model":"gpt-a","everturn":{},"stream":true,"messages":[{"role":"user","content":"hi"}]}"#;
    let piece =
        "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hi\"},\"finish_reason\":null}]}\n\n";
    let end =
        "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let whole = Reply::sse([piece, end]);
    let provider = Loopback::start([whole.clone().cut_at(piece.len()), whole]).await;
    let server = server(&provider, "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 3").await;
    let text = ask(&server, CHAT, &[("everturn-whole", "true")], asked).await.text().await;
    assert_eq!(text.matches("\"content\":\"hi\"").count(), 1, "{text}");
    assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    assert_eq!(provider.counts().requests, 2);
}

#[tokio::test]
async fn a_compressed_refusal_is_understood_and_passed_on_as_it_came() {
    let refusal =
        Reply::json(429, &json!({ "error": { "code": "insufficient_quota", "message": "no credit" } }));
    for refusal in [refusal.clone(), refusal.gzip()] {
        let provider = Loopback::start([refusal.clone()]).await;
        let server = server(&provider, SHORT).await;
        let offer = [("accept-encoding", "gzip, br")];
        let answer = ask(&server, CHAT, &offer, &body(r#""model":"gpt-a","#)).await;
        assert_eq!((answer.status, provider.counts().requests), (429, 1), "waiting helps no empty account");
        assert_eq!(answer.bytes().await, refusal.body_bytes()[..]);
        assert_eq!(provider.requests()[0].header("accept-encoding"), Some("gzip"));
    }
}
