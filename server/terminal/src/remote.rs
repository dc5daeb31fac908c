//! HTTP client with which the commands query a running server.

mod address;
mod clock;

use std::time::Duration;

use crate::Hidden;
use anyhow::{Context as _, Error, Result, anyhow};
use everturn_wire::{Command, ErrorBody};
use reqwest::{
    StatusCode,
    header::{CONTENT_TYPE, DATE, HeaderMap, LINK},
    redirect, retry,
};
use serde::{Serialize, de::DeserializeOwned};

pub(crate) use address::Address;
pub(crate) use clock::Clock;

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Timeout of a message with large attachments.
const UPLOAD: Duration = Duration::from_secs(150);

/// A running server.
pub(crate) struct Remote<'a> {
    client: reqwest::Client,
    address: &'a Address,
    token: Option<&'a Hidden>,
}

impl<'a> Remote<'a> {
    pub(crate) fn new(address: &'a Address, token: Option<&'a Hidden>) -> Result<Self> {
        // A provider that is already installed is fine, too.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Like the WebSocket: a direct connection, without a proxy.
        let client =
            reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none()).retry(retry::never());
        Ok(Self { client: client.timeout(PATIENCE).build()?, address, token })
    }

    /// Sends a GET request; `None` if the resource does not exist.
    pub(crate) async fn get(&self, path: &str) -> Result<Option<Answer>> {
        let call = self.address.call(path);
        self.ask(self.client.get(&call), call).await
    }

    /// Sends a PATCH request; `None` if the resource does not exist.
    ///
    /// # Errors
    /// Also when the server refuses the change, with its message.
    pub(crate) async fn patch(&self, path: &str, change: &impl Serialize) -> Result<Option<Answer>> {
        let call = self.address.call(path);
        self.ask(json(self.client.patch(&call), change)?, call).await
    }

    /// Sends a POST request; `None` if the resource does not exist.
    ///
    /// # Errors
    /// Also when the server refuses it, with its message.
    pub(crate) async fn post_with(&self, path: &str, body: &impl Serialize) -> Result<Option<Answer>> {
        let call = self.address.call(path);
        self.ask(json(self.client.post(&call), body)?, call).await
    }

    /// Sends a POST request without a body; `None` if the resource does not exist.
    ///
    /// # Errors
    /// Also when the server refuses it, with its message.
    pub(crate) async fn post(&self, path: &str) -> Result<Option<Answer>> {
        let call = self.address.call(path);
        self.ask(self.client.post(&call), call).await
    }

    /// Sends a DELETE request; `None` if the resource does not exist.
    pub(crate) async fn delete(&self, path: &str) -> Result<Option<Answer>> {
        let call = self.address.call(path);
        self.ask(self.client.delete(&call), call).await
    }

    /// Starts a turn with a message that does not fit into a frame of the socket. Returns the cursor at which its events begin.
    pub(crate) async fn start_turn(&self, message: &Command) -> Result<String> {
        let call = self.address.call("/chat");
        let request = json(self.client.post(&call).timeout(UPLOAD), message)?;
        let response = self.answered(request, &call).await?;
        let cursor = response.as_ref().and_then(|response| response.headers().get("x-cursor")?.to_str().ok());
        cursor.map(str::to_owned).context("the server is too old for attachments of this size")
    }

    async fn ask(&self, request: reqwest::RequestBuilder, call: String) -> Result<Option<Answer>> {
        let Some(response) = self.answered(request, &call).await? else { return Ok(None) };
        let (next, clock) = (next_page(response.headers()), clock(response.headers()));
        let body = response.bytes().await.with_context(|| format!("cannot read {call}"))?;
        Ok(Some(Answer { call, next, clock, body: body.into() }))
    }

    /// Returns the response if it is a success; `None` if the resource does not exist.
    async fn answered(
        &self,
        request: reqwest::RequestBuilder,
        call: &str,
    ) -> Result<Option<reqwest::Response>> {
        let request = match self.token {
            Some(token) => request.bearer_auth(token.reveal()),
            None => request,
        };
        let response = request.send().await.map_err(|error| self.unsent(call, error))?;
        match response.status() {
            StatusCode::NOT_FOUND => Ok(None),
            StatusCode::OK => Ok(Some(response)),
            StatusCode::BAD_REQUEST | StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => {
                let body = response.bytes().await.with_context(|| format!("cannot read {call}"))?;
                let refused = serde_json::from_slice::<ErrorBody>(&body);
                Err(refused
                    .map_or_else(|_| anyhow!("{call} refused the request"), |body| anyhow!(body.error)))
            }
            status => {
                let body = response.bytes().await.unwrap_or_default();
                let refused = refusal(&self.address.call(""), status, self.token.is_some(), &body);
                Err(refused.unwrap_or_else(|| anyhow!("{call} answered {status}")))
            }
        }
    }

    /// Why a request failed, and what to do.
    fn unsent(&self, call: &str, error: reqwest::Error) -> Error {
        let is_connect = error.is_connect();
        let error = Error::from(error);
        match is_connect {
            true => anyhow!(
                "cannot reach the server at {}: {}; start one with `everturn serve`, or name another one with --server",
                self.address.call(""),
                error.root_cause()
            ),
            false => error.context(format!("cannot ask {call}")),
        }
    }
}

fn json(request: reqwest::RequestBuilder, body: &impl Serialize) -> Result<reqwest::RequestBuilder> {
    Ok(request.header(CONTENT_TYPE, "application/json").body(serde_json::to_vec(body)?))
}

/// Encodes a text as one path segment.
pub(crate) fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let part = |byte: u8| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(part).collect()
}

/// The answer to a request.
pub(crate) struct Answer {
    call: String,
    /// The path of the next page.
    pub(crate) next: Option<String>,
    /// The server's clock.
    pub(crate) clock: Clock,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn read<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_slice(&self.body).with_context(|| format!("unexpected response from {}", self.call))
    }
}

/// Why a server denies access, and what to do, if the status says that. `has_token`: a token was sent. `body`: of its answer.
pub(crate) fn refusal(server: &str, status: StatusCode, has_token: bool, body: &[u8]) -> Option<Error> {
    match status {
        StatusCode::UNAUTHORIZED if has_token => {
            let why = serde_json::from_slice::<ErrorBody>(body).map(|body| format!(" ({})", body.error));
            Some(anyhow!(
                "the server at {server} did not accept the token: check EVERTURN_TOKEN, or --token if you use it{}",
                why.unwrap_or_default()
            ))
        }
        StatusCode::UNAUTHORIZED => {
            Some(anyhow!("the server at {server} requires a token: set EVERTURN_TOKEN"))
        }
        StatusCode::FORBIDDEN => {
            let why = serde_json::from_slice::<ErrorBody>(body).map(|body| body.error);
            let why = why.unwrap_or_else(|_| "it does not say why".to_owned());
            Some(anyhow!("the server at {server} refuses this: {why}"))
        }
        _ => None,
    }
}

/// The server's clock according to the `Date` header.
pub(crate) fn clock(headers: &HeaderMap) -> Clock {
    Clock::of_answer(headers.get(DATE).and_then(|date| date.to_str().ok()))
}

/// The path of the next page, from the `Link` header. Only a path, as the token must not be sent to another server.
fn next_page(headers: &HeaderMap) -> Option<String> {
    let (path, relation) = headers.get(LINK)?.to_str().ok()?.strip_prefix('<')?.split_once('>')?;
    (path.starts_with('/') && relation.contains(r#"rel="next""#)).then(|| path.to_owned())
}
