//! A request, and what is known of it.

use axum::http::{HeaderMap, HeaderName, Method, header::USER_AGENT, request::Parts};
use bytes::Bytes;
use everturn_orchestrator::{AskedModel, Dialect, ModelPlace, Outgoing, RelayCall};

use super::{
    answer::Client,
    door::Door,
    read::{self, Known},
};
use crate::{control::Control, refusal::Refusal};

/// Headers that say which session of which program a request belongs to, or which request it repeats.
const SESSIONS: [HeaderName; 5] = [
    HeaderName::from_static("x-claude-code-session-id"),
    HeaderName::from_static("x-claude-code-agent-id"),
    HeaderName::from_static("session-id"),
    HeaderName::from_static("session_id"),
    HeaderName::from_static("idempotency-key"),
];

/// Maximum length of the names of a program and a session, in characters.
const NAME: usize = 128;

/// A request with its whole body.
pub(super) struct Asked {
    pub(super) head: Parts,
    pub(super) bytes: Bytes,
    /// What is known of the body, if it has been read.
    pub(super) known: Option<Known>,
}

impl Asked {
    /// Returns the call, and the client that waits for it.
    pub(super) fn into_call(self, door: &Door) -> Result<(RelayCall, Client), Refusal> {
        let Self { head, bytes, known } = self;
        let path = door.path(head.uri.path());
        let path =
            path.ok_or_else(|| Refusal::bad("the path has segments that could leave that of the provider"))?;
        let query = head.uri.query().map(str::to_owned);
        let (model, streams, max_output) = match of_path(door, path, query.as_deref()) {
            Some((model, streams)) => (model, streams, None),
            None => {
                let Known { mut model, streams, max_output, .. } =
                    known.unwrap_or_else(|| read::body(&bytes));
                if let Some(model) = model.as_mut() {
                    model.is_ambiguous |= path.contains("models/");
                }
                (model, streams, max_output)
            }
        };
        let named = model.as_ref().map(|model| model.name.clone()).unwrap_or_default();
        let client = Client { dialect: door.dialect, model: named, streams };
        let headers = head.headers;
        let Control { budget, quota, whole, priority } = Control::of(&headers)?;
        // The answer to any other request may say of a stored response that it failed, and is itself none.
        let asks_model = door.is_read && head.method == Method::POST && !path.ends_with("/cancel");
        let call = RelayCall {
            caller: None,
            dialects: door.speaks.to_vec(),
            provider: door.provider.clone(),
            model,
            session: session(&headers),
            program: program(&headers),
            max_output,
            request: Outgoing {
                method: head.method,
                path: path.to_owned(),
                query,
                headers,
                body: bytes,
                dialect: asks_model.then_some(door.dialect),
                streams,
                whole,
            },
            budget,
            quota,
            priority,
        };
        Ok((call, client))
    }
}

/// Returns the model and whether the answer is a stream, if the path says so.
fn of_path(door: &Door, path: &str, query: Option<&str>) -> Option<(Option<AskedModel>, bool)> {
    if door.dialect != Dialect::Gemini {
        return None;
    }
    let start = path.find("models/").map(|at| at + "models/".len());
    let Some((start, length)) = start.and_then(|start| Some((start, path[start..].find(':')?))) else {
        return Some((None, false));
    };
    let place = start..start + length;
    let model = AskedModel {
        name: path[place.clone()].to_owned(),
        place: ModelPlace::Path(place),
        is_ambiguous: false,
    };
    let is_sse = query.is_some_and(|query| query.split('&').any(|field| field == "alt=sse"));
    Some((Some(model), is_sse && path.ends_with(":streamGenerateContent")))
}

fn session(headers: &HeaderMap) -> Option<String> {
    let named = SESSIONS.into_iter().filter_map(|name| headers.get(name)?.to_str().ok());
    let named: Vec<&str> = named.collect();
    (!named.is_empty()).then(|| named.join(" ").chars().take(2 * NAME).collect())
}

/// Returns the first product of the user agent.
fn program(headers: &HeaderMap) -> Option<String> {
    const APP: HeaderName = HeaderName::from_static("x-app");
    let agent = headers.get(USER_AGENT).or_else(|| headers.get(APP))?.to_str().ok()?;
    let first = agent.split(' ').next().unwrap_or_default();
    (!first.is_empty()).then(|| first.chars().take(NAME).collect())
}
