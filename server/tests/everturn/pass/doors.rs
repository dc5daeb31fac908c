//! Every door, credentials, and Everturn's own headers.

use super::*;

const CONFIG: &str = "[[provider]]\nname = \"chat\"\nbase_url = \"URL/v1\"\nmodels = [\"gpt-a\"]\n\
    [[provider]]\nname = \"responses\"\nkind = \"openai-responses\"\nbase_url = \"URL/v1\"\nmodels = [\"o-a\"]\n\
    [[provider]]\nname = \"gemini\"\nkind = \"gemini\"\ncredential = \"client\"\nbase_url = \"URL/v1beta\"\n\
    [[provider]]\nname = \"claude\"\nkind = \"anthropic\"\ncredential = \"client\"\nbase_url = \"URL\"\n";

pub(super) async fn server(provider: &Loopback, retry: &str, more: &str) -> Server {
    let config = CONFIG.replace("URL", &provider.base_url());
    let text = format!("[server]\nallowed_hosts = [\"127.0.0.1\"]\n{more}[retry]\n{retry}\n{config}");
    Home::with(&text).serve().await
}

#[tokio::test]
async fn each_path_goes_to_a_provider_of_its_protocol() {
    let provider = Loopback::start([Reply::json(200, &json!({ "a": 2, "b": 1 }))]).await;
    let server = server(&provider, SHORT, "").await;
    for (path, sent) in [
        ("/v1/messages", "/v1/messages"),
        ("/v1/messages/count_tokens?beta=true", "/v1/messages/count_tokens?beta=true"),
        ("/v1/responses", "/v1/responses"),
        ("/v1/responses/resp_1/cancel", "/v1/responses/resp_1/cancel"),
        ("/v1/completions", "/v1/completions"),
        ("/v1/embeddings", "/v1/embeddings"),
        ("/v1beta/models/gemini-x:generateContent", "/v1beta/models/gemini-x:generateContent"),
        ("/v1beta/models/gemini/gemini-x:countTokens?a=%20", "/v1beta/models/gemini-x:countTokens?a=%20"),
        ("/p/chat/v1/files/a%20b?x=1", "/v1/files/a%20b?x=1"),
        ("/p/claude/v1/messages", "/v1/messages"),
    ] {
        let response = ask(&server, path, &[], "{}").await;
        assert_eq!((response.status, response.text().await.as_str()), (200, r#"{"a":2,"b":1}"#), "{path}");
        assert_eq!(provider.requests().last().unwrap().path, sent);
    }
    let before = provider.counts().requests;
    for (path, status) in [("/p/nobody/v1/x", 404), ("/v1/messages/%2e%2e/x", 400)] {
        assert_eq!(ask(&server, path, &[], "{}").await.status, status, "{path}");
    }
    assert_eq!(provider.counts().requests, before);
}

#[tokio::test]
async fn an_empty_body_has_a_length_and_a_web_socket_is_declined_at_once() {
    let provider = Loopback::start([Reply::json(200, &json!({}))]).await;
    let server = server(&provider, SHORT, "").await;
    assert_eq!(ask(&server, "/v1/responses/resp_1/cancel", &[], "").await.status, 200);
    let request = provider.requests().pop().unwrap();
    let length = request.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    assert_eq!(length.map(|(_, value)| value.as_str()), Some("0"));
    let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
    let declined = send(&server, Method::GET, "/v1/responses", &upgrade, String::new()).await;
    assert_eq!(declined.status, 426);
    assert_eq!(send(&server, Method::GET, "/v1/responses", &[], String::new()).await.status, 405);
    assert_eq!(provider.counts().requests, 1);
}

#[tokio::test]
async fn a_callers_credential_is_forwarded_only_where_that_is_configured_and_the_token_never() {
    let provider = Loopback::start([Reply::json(200, &json!({}))]).await;
    let server = server(&provider, SHORT, "token = \"the-token\"\n").await;
    let own = ("x-everturn-token", "the-token");
    let theirs = ("authorization", "Bearer theirs");
    let refused = ask(&server, "/v1/messages", &[theirs], "{}").await;
    assert_eq!(refused.status, 401);
    assert_eq!(refused.json().await["error"]["type"], "authentication_error");
    assert_eq!(ask(&server, "/v1/messages", &[theirs, own], "{}").await.status, 200);
    let seen = provider.requests().pop().unwrap();
    assert_eq!(
        (seen.header("authorization"), seen.header("x-api-key")),
        (Some("Bearer theirs"), Some("sk-callers-abcdefgh"))
    );
    assert_eq!(seen.header("x-everturn-token"), None);
    assert_eq!(ask(&server, "/v1/responses", &[theirs, own], "{}").await.status, 200);
    let seen = provider.requests().pop().unwrap();
    assert_eq!((seen.header("authorization"), seen.header("x-api-key")), (None, None));
    assert_eq!(
        ask(&server, "/v1/messages", &[("authorization", "Bearer the-token")], "{}").await.status,
        200
    );
    let seen = provider.requests().pop().unwrap();
    assert_eq!(seen.header("authorization"), None, "it was for this server");
}

#[tokio::test]
async fn a_budget_or_a_quota_that_does_not_pass_ends_a_call_at_once() {
    let long = Reply::json(429, &json!({ "error": { "message": "m" } })).header("retry-after", "3600");
    let provider = Loopback::start([long.clone()]).await;
    let server = server(&provider, LONG, "").await;
    for header in [("everturn-budget", "1m"), ("everturn-quota", "fail")] {
        let response = ask(&server, "/v1/messages", &[header], "{}").await;
        assert_eq!((response.status, response.header("retry-after")), (429, "3600"));
        assert_eq!(response.text().await.as_bytes(), long.body_bytes());
    }
    for header in [("everturn-budget", "soon"), ("everturn-quota", "x"), ("everturn-whole", "x")] {
        let response = ask(&server, "/v1/messages", &[header], "{}").await;
        assert_eq!(response.status, 400);
        assert!(response.json().await["error"]["message"].as_str().unwrap().contains(header.0));
    }
    assert_eq!(provider.counts().requests, 2);
}

#[tokio::test]
async fn a_whole_answer_is_asked_for_again_when_it_breaks_off() {
    let parts = [
        "event: message_start\ndata: {\"type\":\"message_start\"}\n\n",
        "event: content_block_delta\ndata: {\"type\":\"content_block_delta\"}\n\n",
        "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    ];
    let whole = Reply::sse(parts);
    let cut = whole.clone().cut_at(parts[0].len() + parts[1].len());
    let early = Reply::sse(&parts[..2]);
    let provider = Loopback::start([cut, early, whole.clone()]).await;
    let retry = "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 3";
    let server = server(&provider, retry, "").await;
    let response = ask(&server, "/v1/messages", &[("everturn-whole", "true")], r#"{"stream":true}"#).await;
    assert_eq!(response.text().await.as_bytes(), whole.body_bytes());
    assert_eq!(provider.counts().requests, 3);
}

#[tokio::test]
async fn a_silent_provider_cannot_make_a_call_outlive_its_budget() {
    let gate = everturn_sim::Gate::new();
    let start = "event: message_start\ndata: {\"type\":\"message_start\"}\n\n";
    let pings = Reply::sse([start, start]).stall_before(1, &gate);
    let provider = Loopback::start([Reply::status(200).hold(&gate), pings]).await;
    let server = server(&provider, LONG, "").await;
    for body in ["{}", r#"{"stream":true}"#] {
        let response = ask(&server, "/v1/messages", &[("everturn-budget", "1s")], body).await;
        let told = response.json().await;
        let message = told["error"]["message"].as_str().unwrap();
        assert!(message.contains("within the budget of the call"), "{told}");
    }
    calls_until(&server, <[Value]>::is_empty).await;
}

#[tokio::test]
async fn what_is_no_answer_of_a_model_is_asked_for_once() {
    let stream = Reply::sse(["data: {\"content\":\"a\",\"stop\":false}\n\n", "data: {\"stop\":true}\n\n"]);
    let failed = Reply::json(200, &json!({ "status": "failed", "error": { "code": "server_error" } }));
    let replies = [stream.clone(), failed.clone()];
    let is_failed = |path: &str| path.contains("resp_1") || path.contains("files");
    let provider =
        Loopback::with(move |request| replies[usize::from(is_failed(&request.path))].clone()).await;
    let retry = "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 3";
    let server = server(&provider, retry, "").await;
    for (at, (method, path, whole)) in [
        (Method::POST, "/v1beta/interactions", "false"),
        (Method::POST, "/v1beta/interactions", "true"),
        (Method::POST, "/p/chat/v1/completions", "false"),
        (Method::POST, "/p/chat/v1/threads/runs", "true"),
        (Method::GET, "/v1/responses/resp_1", "false"),
        (Method::POST, "/v1/responses/resp_1/cancel", "false"),
        (Method::GET, "/p/chat/v1/files/%E9t%E9.txt", "false"),
    ]
    .into_iter()
    .enumerate()
    {
        let headers = [("content-type", "application/json"), ("everturn-whole", whole)];
        let response = send(&server, method, path, &headers, r#"{"stream":true}"#.to_owned()).await;
        let expected = if is_failed(path) { &failed } else { &stream };
        assert_eq!(response.text().await.as_bytes(), expected.body_bytes(), "{path}");
        assert_eq!(provider.counts().requests, at + 1, "{path} {whole}");
        assert_eq!(provider.requests().pop().unwrap().path, path.strip_prefix("/p/chat").unwrap_or(path));
    }
}
