//! The Messages API.

use super::*;

const START: &str =
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m1\",\"usage\":{}}}\n\n";
const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
const REST: [&str; 5] = [
    "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n",
    ": a comment\n",
    "event: content_block_delta\ndata: {\"delta\":{\"text\":\"Hi\",\"type\":\"text_delta\"},\"zz\":1,\"type\":\"content_block_delta\",\"index\":0}\n\n",
    "event: brand_new\ndata: not even JSON\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
];
const BODY: &str =
    r#"{"stream":true,  "z":{"b":1,"a":[1.0,2e3]},"model":"claude-a","messages":[],"max_tokens":5}"#;

fn answer() -> Reply {
    let parts: Vec<_> = [START, PING].into_iter().chain(REST).collect();
    Reply::sse(parts).header("request-id", "req_1").header("x-new", "kept").header("date", "today")
}

#[tokio::test]
async fn a_request_is_sent_as_it_came_until_it_is_answered() {
    let broken = "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let in_stream = Reply::sse([START, PING, broken]);
    let cut = Reply::sse([START, PING]).cut_at(START.len());
    let script = [fault::overloaded(), in_stream, cut, answer()];
    let provider = Loopback::start(script).await;
    let server = messages_server(&provider, "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 5").await;
    let headers =
        [("anthropic-beta", "a-1,b-2"), ("x-claude-code-session-id", "s"), ("everturn-budget", "10m")];
    let response = ask(&server, "/v1/messages?beta=true", &headers, BODY).await;
    assert_eq!(response.status, 200);
    let mut shown: Vec<_> =
        response.headers.iter().map(|(name, value)| (name.to_string(), value.clone())).collect();
    shown.retain(|(name, _)| name != "transfer-encoding");
    let expected = [
        ("content-type", "text/event-stream"),
        ("request-id", "req_1"),
        ("x-new", "kept"),
        ("date", "today"),
    ];
    assert_eq!(shown, expected.map(|(name, value)| (name.to_owned(), value.parse().unwrap())));
    assert_eq!(response.text().await.as_bytes(), answer().body_bytes());
    let requests = provider.requests();
    assert_eq!(requests.len(), 4);
    for request in requests {
        assert_eq!((request.method.as_str(), request.path.as_str()), ("POST", "/v1/messages?beta=true"));
        assert_eq!(request.body, BODY);
        let mut seen: Vec<_> =
            request.headers.iter().map(|(name, value)| (name.to_lowercase(), value.as_str())).collect();
        seen.retain(|(name, _)| name != "host");
        seen.sort();
        let length = BODY.len().to_string();
        let expected = [
            ("anthropic-beta", "a-1,b-2"),
            ("content-length", &length),
            ("content-type", "application/json"),
            ("x-api-key", "sk-own-12345678"),
            ("x-claude-code-session-id", "s"),
        ];
        assert_eq!(seen, expected.map(|(name, value)| (name.to_owned(), value)));
    }
}

#[tokio::test]
async fn a_refusal_that_does_not_pass_is_the_providers_own_and_comes_at_once() {
    for (status, body) in [
        (401, r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#),
        (
            400,
            r#"{"type":"error", "error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}"#,
        ),
        (404, r#"{"error":{"type":"not_found_error","message":"model: x"},"type":"error"}"#),
        (413, "too large"),
    ] {
        let refusal = Reply::status(status)
            .header("content-type", "application/json")
            .header("x-should-retry", "false")
            .body(body);
        let provider = Loopback::start([refusal]).await;
        let server = messages_server(&provider, SHORT).await;
        let response = ask(&server, "/v1/messages", &[], BODY).await;
        assert_eq!((response.status, response.header("x-should-retry")), (status, "false"));
        assert_eq!(response.header("content-length"), body.len().to_string());
        assert_eq!((response.text().await.as_str(), provider.counts().requests), (body, 1));
    }
}

#[tokio::test]
async fn a_call_whose_key_is_known_to_be_rejected_gets_the_providers_own_refusal() {
    let body =
        r#"{"type":"error", "error":{"type":"authentication_error","message":"invalid sk-own-12345678"}}"#;
    let refusal = Reply::status(401)
        .header("content-type", "application/json")
        .header("request-id", "req_1")
        .header("set-cookie", "secret=1")
        .body(body);
    let provider = Loopback::start([refusal]).await;
    let server = messages_server(&provider, SHORT).await;
    for session in ["first", "second"] {
        let response = ask(&server, "/v1/messages", &[("x-claude-code-session-id", session)], BODY).await;
        assert_eq!((response.status, response.header("request-id")), (401, "req_1"));
        assert_eq!(response.header("content-type"), "application/json");
        let cookie = if session == "first" { "secret=1" } else { "" };
        assert_eq!(response.header("set-cookie"), cookie, "{session}");
        assert_eq!(response.text().await, body.replace("sk-own-12345678", "***************"));
    }
    assert_eq!(provider.counts().requests, 1, "a rejected key is not sent again");
}

#[tokio::test]
async fn what_an_answer_used_is_counted_though_its_client_left_with_its_last_event() {
    let gate = everturn_sim::Gate::new();
    let last = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
    let used = "event: message_delta\ndata: {\"type\":\"message_delta\",\"usage\":{\"input_tokens\":3,\"output_tokens\":7}}\n\n";
    let provider = Loopback::start([Reply::sse([used, last]).stall_before(2, &gate)]).await;
    let server = messages_server(&provider, SHORT).await;
    let mut response = ask(&server, "/v1/messages", &[], BODY).await;
    while response.line().await.unwrap() != "event: message_stop" {}
    assert_eq!(response.line().await.as_deref(), Some("data: {\"type\":\"message_stop\"}"));
    drop(response);
    calls_until(&server, |calls| calls.first().is_some_and(|call| call["listeners"] == 0)).await;
    gate.open();
    calls_until(&server, <[Value]>::is_empty).await;
    let total = get(&server, "/usage").await.json().await["total"].clone();
    assert_eq!((&total["requests"], &total["outputTokens"]), (&json!(1), &json!(7)), "{total}");
}

#[tokio::test]
async fn what_a_compressed_answer_used_is_counted() {
    let used = json!({ "content": [], "usage": { "input_tokens": 3, "output_tokens": 7 } });
    let reply = Reply::json(200, &used).gzip();
    let provider = Loopback::start([reply.clone()]).await;
    let server = messages_server(&provider, SHORT).await;
    let body = r#"{"model":"claude-a","messages":[],"max_tokens":5}"#;
    let answer = ask(&server, "/v1/messages", &[("accept-encoding", "gzip, deflate")], body).await;
    assert_eq!(answer.bytes().await, reply.body_bytes()[..]);
    calls_until(&server, <[Value]>::is_empty).await;
    let total = get(&server, "/usage").await.json().await["total"].clone();
    assert_eq!((&total["inputTokens"], &total["outputTokens"]), (&json!(3), &json!(7)), "{total}");
}

#[tokio::test]
async fn when_all_tries_failed_the_last_refusal_is_the_answer() {
    let provider = Loopback::start([fault::rate_limited(None), fault::overloaded()]).await;
    let server = messages_server(&provider, SHORT).await;
    let response = ask(&server, "/v1/messages", &[], BODY).await;
    assert_eq!((response.status, response.header("content-type")), (529, "application/json"));
    assert_eq!(response.text().await.as_bytes(), fault::overloaded().body_bytes());
    assert_eq!(provider.counts().requests, 3);
}

#[tokio::test]
async fn an_answer_that_breaks_off_after_content_breaks_off() {
    let reply = answer();
    let length = reply.body_bytes().len() - 10;
    let provider = Loopback::start([reply.reset_at(length)]).await;
    let server = messages_server(&provider, SHORT).await;
    let response = ask(&server, "/v1/messages", &[], BODY).await;
    assert_eq!(response.status, 200);
    assert_eq!(response.try_text().await, None);
    assert_eq!(provider.counts().requests, 1);
}

#[tokio::test]
async fn an_unknown_model_goes_to_the_default_provider_and_ours_are_renamed_in_place() {
    let provider = Loopback::start([Reply::json(200, &json!({ "ok": true }))]).await;
    let server = messages_server(&provider, SHORT).await;
    for (model, sent) in
        [("claude-unheard-of", "claude-unheard-of"), ("sim/claude-a", "claude-a"), ("sim/other", "other")]
    {
        let body = |model: &str| format!(r#"{{"a" : 1, "model" : "{model}" ,"messages":[]}}"#);
        let response = ask(&server, "/v1/messages", &[], &body(model)).await;
        assert_eq!((response.status, response.text().await.as_str()), (200, r#"{"ok":true}"#));
        assert_eq!(provider.requests().last().unwrap().body, body(sent));
    }
}

#[tokio::test]
async fn what_is_no_answer_though_its_status_says_so_is_asked_for_again() {
    let json = |body| Reply::status(200).header("content-type", "application/json").body(body);
    let whole = r#"{"type":"message","content":[]}"#;
    let plain = Reply::status(200).header("content-type", "text/plain");
    let script = [
        Reply::status(200),
        plain.body("upstream connect error or disconnect/reset before headers. reset reason: overflow"),
        json(&whole[..20]),
        json(whole),
    ];
    let provider = Loopback::start(script).await;
    let server = messages_server(&provider, "schedule = \"exponential\"\nbase_ms = 1\nmax_retries = 5").await;
    let response = ask(&server, "/v1/messages", &[], &BODY.replace("\"stream\":true,", "")).await;
    assert_eq!((response.status, response.text().await.as_str()), (200, whole));
    assert_eq!(provider.counts().requests, 4);
}

#[tokio::test]
async fn a_large_call_that_comes_from_a_cache_does_not_wait_for_a_limit_on_input() {
    let usage = json!({ "input_tokens": 100, "cache_read_input_tokens": 70_000, "output_tokens": 5 });
    let reply = Reply::json(200, &json!({ "type": "message", "usage": usage }))
        .header("anthropic-ratelimit-input-tokens-limit", "50000")
        .header("anthropic-ratelimit-input-tokens-remaining", "40000")
        .header("anthropic-ratelimit-input-tokens-reset", "600");
    let provider = Loopback::start([reply]).await;
    let server = messages_server(&provider, SHORT).await;
    for n in 0..3 {
        let body = format!(r#"{{"model":"claude-a","n":{n},"system":"{}"}}"#, "x".repeat(300 << 10));
        let asked = timeout(DEADLINE, ask(&server, "/v1/messages", &[], &body));
        assert_eq!(asked.await.expect("it does not wait").status, 200);
    }
    assert_eq!(provider.counts().requests, 3);
}
