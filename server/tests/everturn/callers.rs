//! Several callers behind one server: what each may use and see, through every door.

use std::any::Any;

use everturn_sim::{
    Loopback, Reply, Request, chat, fault, nats,
    postgres::{self, PostgresServer},
};
use hyper::Method;
use serde_json::{Value, json};
use tokio::{task::yield_now, time::timeout};

use crate::{
    client::{Response, Socket, ndjson, send, try_send},
    home::{DEADLINE, Home, LONG, Server, stderr, stdout},
};

mod attack;
mod audit;
mod door;
mod isolation;
mod key;
mod limit;
mod line;
mod models;
mod panel;
mod proxy;
mod socket;
mod token;
mod upgrade;
mod usage;

/// What only Ann has said, and what only her conversations are called.
const SECRETS: [&str; 3] = ["heron", "plans", "@ann"];
const ADMIN: &str = "the-administrators";

/// A server with callers, and a token of each.
struct World {
    provider: Loopback,
    home: Home,
    server: Server,
    ann: String,
    ben: String,
    /// Where conversations are kept, if not in a file. Ended last.
    _store: Option<Box<dyn Any>>,
}

/// Answers at once, unless a request asks to wait.
fn model(request: &Request) -> Reply {
    let body = String::from_utf8_lossy(&request.body);
    if body.contains("wait for it") {
        return fault::overloaded();
    }
    match request.path.as_str() {
        path if path.contains("messages") => Reply::json(200, &json!({ "content": "passed" })),
        _ => chat::text(["Fine."]).reply(),
    }
}

/// Returns the configuration of a server with a provider of each kind.
fn configured(provider: &Loopback, more: &str) -> String {
    let url = provider.base_url();
    format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{LONG}\n{more}[[provider]]\nname = \"sim\"\nbase_url = \"{url}/v1\"\n\
         models = [\"model\"]\n[[provider]]\nname = \"claude\"\nkind = \"anthropic\"\napi_key = \"sk-own-12345678\"\n\
         base_url = \"{url}\"\nmodels = [\"claude-a\"]\n[[provider]]\nname = \"gem\"\nkind = \"gemini\"\napi_key = \
         \"sk-own-12345678\"\nbase_url = \"{url}\"\nmodels = [\"gemini-a\"]\n[[provider]]\nname = \"own\"\nkind = \"anthropic\"\ncredential = \"client\"\n\
         base_url = \"{url}\"\nmodels = [\"claude-b\"]\n"
    )
}

async fn serve(home: &Home, variables: &[(&str, &str)]) -> Server {
    let mut command = home.command(&["--listen", "127.0.0.1:0"]);
    command.env("EVERTURN_TOKEN", ADMIN).envs(variables.iter().copied());
    home.launch(command).await.expect("a greeting")
}

async fn make_token(home: &Home, words: &[&str]) -> String {
    let made = home.run(&[&["token", "new"], words].concat()).await;
    assert!(made.status.success(), "{}", stderr(&made));
    stdout(&made).trim().to_owned()
}

/// Returns a token in base64url, as a subprotocol of a WebSocket carries it.
fn encoded(token: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let letters = |bytes: &[u8]| {
        let bits = bytes.iter().chain(&[0; 2]).take(3).fold(0, |bits, byte| bits << 8 | usize::from(*byte));
        (0..=bytes.len()).map(move |n| char::from(LETTERS[bits >> (18 - 6 * n) & 63]))
    };
    token.as_bytes().chunks(3).flat_map(letters).collect()
}

impl World {
    async fn new() -> Self {
        let provider = Loopback::with(model).await;
        let home = Home::with(&configured(&provider, ""));
        let ann = make_token(&home, &["ann"]).await;
        let ben = make_token(&home, &["ben"]).await;
        Self { server: serve(&home, &[]).await, provider, home, ann, ben, _store: None }
    }

    /// With conversations in Postgres; `None` = it is not installed.
    async fn on_postgres() -> Option<Self> {
        let programs = postgres::programs()?;
        let directory = tempfile::tempdir().unwrap();
        let database = PostgresServer::start(&programs, directory.path(), &[]).await;
        let table = format!("[postgres]\nurl = \"{}\"\n", database.url());
        Some(Self::on(&table, Box::new((database, directory))).await)
    }

    /// With conversations on NATS; `None` = it is not installed.
    async fn on_nats() -> Option<Self> {
        let program = nats::program()?;
        let directory = tempfile::tempdir().unwrap();
        let shared = nats::NatsServer::start(&program, directory.path(), nats::NatsConfig::default()).await;
        let table = format!("[cluster]\nservers = [\"{}\"]\n", shared.url());
        Some(Self::on(&table, Box::new((shared, directory))).await)
    }

    async fn on(table: &str, store: Box<dyn Any>) -> Self {
        let provider = Loopback::with(model).await;
        let callers =
            ["ann", "ben"].map(|name| format!("[[caller]]\nname = \"{name}\"\ntoken_env = \"{name}\"\n"));
        let home = Home::with(&configured(&provider, &format!("{}{table}", callers.concat())));
        let (ann, ben) = ("the-token-of-ann".to_owned(), "the-token-of-ben".to_owned());
        let server = serve(&home, &[("ann", &ann), ("ben", &ben)]).await;
        Self { server, provider, home, ann, ben, _store: Some(store) }
    }

    async fn ask(&self, token: &str, method: &str, path: &str, body: Option<&Value>) -> Response {
        let bearer = format!("Bearer {token}");
        let mut headers = vec![("authorization", bearer.as_str())];
        headers.extend(body.map(|_| ("content-type", "application/json")));
        let method = Method::from_bytes(method.as_bytes()).unwrap();
        let body = body.map(Value::to_string).unwrap_or_default();
        // A refusal can get lost if the server closes the connection while the body is on its way.
        for _ in 0..5 {
            if let Some(answer) = try_send(&self.server, method.clone(), path, &headers, body.clone()).await {
                return answer;
            }
        }
        panic!("no answer: {path}")
    }

    async fn json(&self, token: &str, path: &str) -> Value {
        let response = self.ask(token, "GET", path, None).await;
        assert_eq!(response.status, 200, "{path}");
        response.json().await
    }

    /// Has a caller send a message, and returns its conversation when the answer is complete.
    async fn chat(&self, token: &str, body: &Value) -> String {
        let response = self.ask(token, "POST", "/chat", Some(body)).await;
        assert_eq!(response.status, 200, "{body}");
        let id = response.header("x-conversation-id").to_owned();
        let events = ndjson(response).await;
        assert!(events.iter().all(|event| event["conversationId"] == *id), "{events:?}");
        id
    }

    /// Has Ann talk: a conversation with a name, one without, and one whose turn waits and has a queue.
    async fn with_ann_talking(self) -> Self {
        let plans = json!({ "message": "The heron nests in April", "conversationId": "plans" });
        assert_eq!(self.chat(&self.ann, &plans).await, "plans");
        self.chat(&self.ann, &json!({ "message": "heron again" })).await;
        let waiting = json!({ "message": "heron, wait for it", "conversationId": "plans-2" });
        drop(self.ask(&self.ann, "POST", "/chat", Some(&waiting)).await);
        let queued = json!({ "text": "heron queued", "messageId": "heron-1" });
        assert_eq!(
            self.ask(&self.ann, "POST", "/conversations/plans-2/queue", Some(&queued)).await.status,
            200
        );
        let waits = async {
            while self.json(&self.ann, "/conversations/plans-2/status").await["retry"]["nextAt"].is_null() {
                yield_now().await;
            }
        };
        timeout(DEADLINE, waits).await.expect("the turn waits");
        self
    }

    /// Everything that Ann sees of her conversations.
    async fn anns(&self) -> Value {
        let mut all = vec![self.json(&self.ann, "/conversations").await];
        for id in ["plans", "plans-2"] {
            for what in ["", "/metrics", "/status", "/approvals", "/retry", "/model-settings"] {
                all.push(self.json(&self.ann, &format!("/conversations/{id}{what}")).await);
            }
        }
        json!(all)
    }
}

fn assert_silent(text: &str, what: &str) {
    for secret in SECRETS {
        assert!(!text.contains(secret), "{what} tells {secret}: {text}");
    }
}
