//! Calls that are passed through: what the caller and the provider see of each other.

use everturn_sim::{Loopback, Reply, fault};
use hyper::Method;
use serde_json::json;

use crate::{
    client::{Response, send},
    home::{Home, SHORT, Server},
};

mod messages;

/// A server whose only provider speaks the Messages API.
async fn messages_server(provider: &Loopback, retry: &str) -> Server {
    Home::with(&format!(
        "[server]\nallowed_hosts = [\"127.0.0.1\"]\n[retry]\n{retry}\n[[provider]]\nname = \"sim\"\nkind = \
         \"anthropic\"\napi_key = \"sk-own-12345678\"\nbase_url = \"{}\"\nmodels = [\"claude-a\"]\n",
        provider.base_url()
    ))
    .serve()
    .await
}

async fn ask(server: &Server, path: &str, headers: &[(&str, &str)], body: &str) -> Response {
    let headers =
        [&[("content-type", "application/json"), ("x-api-key", "sk-callers-abcdefgh")], headers].concat();
    send(server, Method::POST, path, &headers, body.to_owned()).await
}
