//! Calls that are passed through: a vendor's own paths, requests and answers unchanged.

mod answer;
mod error;
mod frames;
mod held;
mod merge;
mod read;

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderMap, HeaderName, header::USER_AGENT},
    response::Response,
    routing::post,
};
use everturn_orchestrator::{Dialect, Outgoing, RelayCall};

use crate::{api::Api, body};
use answer::Client;
pub(crate) use answer::PassedThrough;
pub(crate) use error::refused;
use read::Asked;

/// Headers that say which session of which program a request belongs to, or which request it repeats.
const SESSIONS: [&str; 5] =
    ["x-claude-code-session-id", "x-claude-code-agent-id", "session-id", "session_id", "idempotency-key"];

/// Maximum length of a program's name, in characters.
const PROGRAM: usize = 64;

/// A door: which requests pass through it.
#[derive(Clone, Copy, Debug)]
struct Door {
    /// How its answers are read.
    dialect: Dialect,
    /// What a provider must speak, in order of preference.
    speaks: &'static [Dialect],
}

const MESSAGES: Door = Door { dialect: Dialect::Messages, speaks: &[Dialect::Messages] };

pub(crate) fn routes() -> Router<Api> {
    Router::new().route("/v1/messages", post(messages))
}

/// Whether this path belongs to the Messages API.
pub(crate) fn is_messages(path: &str) -> bool {
    path == "/v1/messages" || path.starts_with("/v1/messages/")
}

/// `POST /v1/messages`
async fn messages(State(api): State<Api>, request: Request) -> Response {
    pass(&api, MESSAGES, "/v1/", request).await
}

/// Passes a request through. Its path goes to the provider without `prefix`.
async fn pass(api: &Api, door: Door, prefix: &str, request: Request) -> Response {
    let (head, body) = request.into_parts();
    let place = match api.stream_place() {
        Ok(place) => place,
        Err(why) => return error::refused(door.dialect, why),
    };
    // The reservation ends when the body has been read; from then on it counts as that of a call.
    let (bytes, room) = match body::whole(body, api).await {
        Ok(read) => read,
        Err(why) => return error::refused(door.dialect, why),
    };
    drop(room);
    let path = head.uri.path();
    let path = path.strip_prefix(prefix).unwrap_or(path).to_owned();
    let Asked { model, streams } = read::body(&bytes);
    let named = model.as_ref().map(|model| model.name.clone()).unwrap_or_default();
    let call = RelayCall {
        dialects: door.speaks.to_vec(),
        provider: None,
        model,
        session: session(&head.headers),
        program: program(&head.headers),
        request: Outgoing {
            method: head.method,
            path,
            query: head.uri.query().map(str::to_owned),
            headers: head.headers,
            body: bytes,
            dialect: Some(door.dialect),
            streams,
            whole: false,
        },
        budget: None,
        fails_on_quota: None,
    };
    let client = Client { dialect: door.dialect, model: named, streams };
    match api.orchestrator.pass_through(call) {
        Ok(listener) => answer::answer(client, listener, place, api.limits.hold).await,
        Err(why) => error::not_passed(door.dialect, &why),
    }
}

fn session(headers: &HeaderMap) -> Option<String> {
    let named = SESSIONS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
    let named: Vec<&str> = named.collect();
    (!named.is_empty()).then(|| named.join(" "))
}

/// Returns the first product of the user agent.
fn program(headers: &HeaderMap) -> Option<String> {
    const APP: HeaderName = HeaderName::from_static("x-app");
    let agent = headers.get(USER_AGENT).or_else(|| headers.get(APP))?.to_str().ok()?;
    let first = agent.split(' ').next().unwrap_or_default();
    (!first.is_empty()).then(|| first.chars().take(PROGRAM).collect())
}
