//! Whatever is sent and answered, both sides see it as if they spoke to each other directly.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, TestRunner},
};
use tokio::runtime::Runtime;

use super::*;

/// A request and the answer to it.
#[derive(Clone, Debug)]
struct Case {
    path: &'static str,
    query: Option<String>,
    headers: Vec<(String, String)>,
    body: String,
    status: u16,
    answer_headers: Vec<(String, String)>,
    answer: Answer,
    /// Into pieces of how many bytes the answer is split.
    pieces: usize,
}

#[derive(Clone, Debug)]
enum Answer {
    Stream(Vec<String>),
    Whole(String),
    /// As if compressed.
    Encoded(String),
}

impl Answer {
    fn text(&self) -> String {
        match self {
            Self::Stream(events) => events.concat(),
            Self::Whole(text) | Self::Encoded(text) => text.clone(),
        }
    }
}

const PATHS: [&str; 9] = [
    "/v1/messages",
    "/v1/messages/count_tokens",
    "/v1/responses",
    CHAT,
    "/v1/completions",
    "/v1/embeddings",
    "/v1beta/models/gemini-x:streamGenerateContent",
    "/p/chat/v1/chat/completions",
    "/p/chat/v1/anything/else",
];

/// The door through which a request passes only if it names a model.
const CHAT: &str = "/v1/chat/completions";

/// Events of every API: preludes, content, ends, failures, unknown ones, and what is no event.
const EVENTS: [&str; 22] = [
    "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":3}}}\n\n",
    "event: ping\ndata: {\"type\": \"ping\"}\n\n",
    "event: content_block_start\r\ndata: {\"type\":\"content_block_start\",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\r\n\r\n",
    "event: content_block_delta\ndata: {\"z\":1,\"type\":\"content_block_delta\",\"delta\":{\"text\":\"ü\\u00fc\"}}\n\n",
    "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n",
    "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\"}}\n\n",
    "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\n",
    "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"no\"}}}\n\n",
    "data: {\"type\":\"response.completed\"}\n\n",
    "data: {\"choices\":[{\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n",
    "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
    "data: {\"error\":{\"message\":\"no\",\"code\":503}}\n\n",
    "data: [DONE]\n\n",
    "data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":\"a\"}]}}]}\n\n",
    "data: {\"candidates\":[{\"finishReason\":\"STOP\"}]}\n\n",
    "event: brand_new\ndata: {\"type\":\"brand_new\",\"x\":[1,2.50,1e3]}\n\n",
    "id: 7\nretry: 5\ndata: two\ndata: lines\n\n",
    ": a comment\n\n",
    "data: unfinished",
    "\n\n",
];

fn token() -> impl Strategy<Value = String> {
    "[a-z]{1,8}"
}

fn headers() -> impl Strategy<Value = Vec<(String, String)>> {
    vec((token().prop_map(|name| format!("x-{name}")), "[!-~]([ -~]{0,20}[!-~])?"), 0..4)
}

fn json() -> impl Strategy<Value = String> {
    let field = prop_oneof![
        Just(r#""stream":true"#.to_owned()),
        Just(r#""stream" : false"#.to_owned()),
        Just(r#""model":"unheard-of""#.to_owned()),
        Just(r#""messages":[{"role":"user","content":"h\u00fc ü"}]"#.to_owned()),
        (token(), any::<i64>()).prop_map(|(name, n)| format!("\"{name}\": {n}.50")),
    ];
    vec(field, 0..6).prop_map(|fields| format!("{{ {} }}\n", fields.join(",\n  ")))
}

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        4 => vec((0..EVENTS.len()).prop_map(|at| EVENTS[at].to_owned()), 0..8).prop_map(Answer::Stream),
        2 => json().prop_map(Answer::Whole),
        1 => "\\PC{0,40}".prop_map(Answer::Whole),
        1 => "[!-~]{1,40}".prop_map(Answer::Encoded),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    let request = (
        (0..PATHS.len()).prop_map(|at| PATHS[at]),
        proptest::option::of("(alt=sse|beta=true|a=%20b&c)"),
        headers(),
        prop_oneof![4 => json(), 1 => "\\PC{0,40}"],
    );
    // Without 401 and 407: a rejected key is not sent again, so that later cases would never reach the provider.
    let failed = (400_u16..=599).prop_filter("a rejected key", |status| ![401, 407].contains(status));
    let status = prop_oneof![4 => Just(200_u16), 1 => Just(201), 3 => failed];
    (request, status, headers(), answer(), 1..40_usize).prop_map(
        |((path, query, headers, body), status, answer_headers, answer, pieces)| Case {
            path,
            query,
            headers,
            body: match path {
                CHAT => format!("{{\"model\" : \"unheard-of\",\"x\": {}}}\n", Value::from(body)),
                _ => body,
            },
            status,
            answer_headers,
            answer,
            pieces,
        },
    )
}

fn reply(case: &Case) -> Reply {
    let kind = if let Answer::Stream(_) = case.answer { "text/event-stream" } else { "application/json" };
    let reply = Reply::status(case.status).header("content-type", kind).header("date", "today");
    let reply = match case.answer {
        Answer::Encoded(_) => reply.header("content-encoding", "gzip"),
        _ => reply,
    };
    let reply = case.answer_headers.iter().fold(reply, |reply, (name, value)| reply.header(name, value));
    let reply = reply.body(case.answer.text());
    let reply = if let Answer::Stream(_) = case.answer { reply.chunked() } else { reply.content_length() };
    reply.split_every(case.pieces)
}

fn sorted(headers: impl Iterator<Item = (String, String)>, without: &[&str]) -> Vec<(String, String)> {
    let mut headers: Vec<_> = headers.filter(|(name, _)| !without.contains(&name.as_str())).collect();
    headers.sort();
    headers
}

#[test]
fn both_sides_see_what_they_would_see_without_us() {
    let runtime = Runtime::new().unwrap();
    let script: Arc<Mutex<HashMap<String, Reply>>> = Arc::default();
    let replies = script.clone();
    let (provider, server) = runtime.block_on(async {
        let provider =
            Loopback::with(move |request| replies.lock().unwrap()[request.header("x-case").unwrap()].clone())
                .await;
        let retry =
            "schedule = \"exponential\"\nbase_ms = 1\nmax_delay_ms = 1\nmax_retries = 1\njitter = 0.0";
        let server = doors::server(&provider, retry, "").await;
        (provider, server)
    });
    let number = AtomicUsize::new(0);
    let mut runner = TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
    let checked = runner.run(&case(), |case| {
        let name = format!("case-{}", number.fetch_add(1, Ordering::Relaxed));
        script.lock().unwrap().insert(name.clone(), reply(&case));
        runtime.block_on(async {
            let own = [("content-type", "application/json"), ("x-case", &name), ("accept", "*/*")];
            let theirs = case.headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let sent: Vec<_> = own.into_iter().chain(theirs).collect();
            let path = match &case.query {
                Some(query) => format!("{}?{query}", case.path),
                None => case.path.to_owned(),
            };
            let response = send(&server, Method::POST, &path, &sent, case.body.clone()).await;
            prop_assert_eq!(response.status, case.status);
            let seen = response
                .headers
                .iter()
                .map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
            let seen = sorted(
                seen,
                &["transfer-encoding", "content-length", "date", "content-type", "content-encoding"],
            );
            prop_assert_eq!(seen, sorted(case.answer_headers.iter().cloned(), &[]));
            let encoded = matches!(case.answer, Answer::Encoded(_));
            prop_assert_eq!(response.header("content-encoding"), if encoded { "gzip" } else { "" });
            prop_assert_eq!(response.text().await, case.answer.text());
            let request = provider.requests().pop().unwrap();
            prop_assert_eq!(&request.body[..], case.body.as_bytes());
            let expected = path.strip_prefix("/p/chat").unwrap_or(&path);
            prop_assert_eq!(request.path.as_str(), expected);
            let seen = request.headers.iter().map(|(name, value)| (name.to_lowercase(), value.clone()));
            let sent = sent.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
            prop_assert_eq!(sorted(seen, &["host", "content-length"]), sorted(sent, &[]));
            Ok(())
        })
    });
    checked.unwrap();
}

#[tokio::test]
async fn size_does_not_matter() {
    for (request, answer) in [(1 << 20, 8 << 20), (8 << 20, 1 << 20)] {
        let body = format!(r#"{{"messages":"{}","model":"claude-a"}}"#, "x".repeat(request));
        let whole = Reply::json(200, &json!({ "content": "y".repeat(answer) }));
        let event = format!("event: content_block_delta\ndata: {{\"delta\":\"{}\"}}\n\n", "z".repeat(60_000));
        let stream = Reply::sse(vec![event; answer / 60_000]);
        let provider = Loopback::start([whole.clone(), stream.clone()]).await;
        let server = messages_server(&provider, SHORT).await;
        for reply in [whole, stream] {
            let response = ask(&server, "/v1/messages", &[], &body).await;
            assert!(response.text().await.as_bytes() == reply.body_bytes(), "{request} {answer}");
            assert!(provider.requests().pop().unwrap().body == body.as_bytes());
        }
    }
}
