//! Calls that are passed through: what the caller and the provider see of each other.

use everturn_sim::{Loopback, Reply, fault};
use hyper::Method;

use serde_json::{Value, json};
use tokio::{join, task::yield_now, time::timeout};

use crate::{
    client::{Response, get, post, send, try_send},
    home::{DEADLINE, Home, LONG, SHORT, Server, stderr, stdout},
};

mod chat;
mod control;
mod doors;
mod hostile;
mod identity;
mod leaving;
mod messages;
mod models;
#[cfg(target_os = "linux")]
mod spool;

/// A server whose only provider speaks the Messages API.
async fn messages_server(provider: &Loopback, retry: &str) -> Server {
    messages_home(provider, retry, "").serve().await
}

fn messages_home(provider: &Loopback, retry: &str, more: &str) -> Home {
    Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{retry}\n[[provider]]\nname = \"sim\"\nkind = \
         \"anthropic\"\napi_key = \"sk-own-12345678\"\nbase_url = \"{}\"\nmodels = [\"claude-a\"]\n{more}",
        provider.base_url()
    ))
}

async fn ask(server: &Server, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let headers =
        [&[("content-type", "application/json"), ("x-api-key", "sk-callers-abcdefgh")], headers].concat();
    send(server, Method::POST, path, &headers, body.to_owned()).await
}

/// Waits until the calls are as described, and returns them.
async fn calls_until(server: &Server, is_so: impl Fn(&[Value]) -> bool) -> Vec<Value> {
    timeout(DEADLINE, async {
        loop {
            let calls = get(server, "/calls").await.json().await["calls"].as_array().unwrap().clone();
            if is_so(&calls) {
                return calls;
            }
            yield_now().await;
        }
    })
    .await
    .expect("the calls become so in time")
}
