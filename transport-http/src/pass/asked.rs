//! A request, and what is known of it.

use axum::http::{
    HeaderMap, HeaderName, StatusCode,
    header::{ACCEPT_ENCODING, USER_AGENT},
    request::Parts,
};
use bytes::Bytes;
use everturn_orchestrator::{AskedModel, Dialect, ModelPlace, Outgoing, RelayCall};
use everturn_wire::{OnQuota, Priority};

use super::{
    answer::Client,
    budget,
    door::Door,
    read::{self, Known},
};
use crate::refusal::Refusal;

/// Headers that say which session of which program a request belongs to, or which request it repeats.
const SESSIONS: [&str; 5] =
    ["x-claude-code-session-id", "x-claude-code-agent-id", "session-id", "session_id", "idempotency-key"];

/// Everturn's own headers.
const BUDGET: &str = "everturn-budget";
const QUOTA: &str = "everturn-quota";
const WHOLE: &str = "everturn-whole";
const PRIORITY: &str = "everturn-priority";

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
        let (model, streams) = match of_path(door, path, query.as_deref()) {
            Some(known) => known,
            None => {
                let Known { model, streams, .. } = known.unwrap_or_else(|| read::body(&bytes));
                (model, streams)
            }
        };
        let named = model.as_ref().map(|model| model.name.clone()).unwrap_or_default();
        let client = Client { dialect: door.dialect, model: named, streams };
        let mut headers = head.headers;
        let (budget, quota, whole) = (budget_of(&headers)?, quota_of(&headers)?, whole_of(&headers)?);
        let priority = priority_of(&headers)?;
        if streams && headers.contains_key(ACCEPT_ENCODING) {
            // Where content begins could not be seen in a compressed stream, nor could a wait be put before it.
            headers.insert(ACCEPT_ENCODING, axum::http::HeaderValue::from_static("identity"));
        }
        let call = RelayCall {
            caller: None,
            dialects: door.speaks.to_vec(),
            provider: door.provider.clone(),
            model,
            session: session(&headers),
            program: program(&headers),
            request: Outgoing {
                method: head.method,
                path: path.to_owned(),
                query,
                headers,
                body: bytes,
                dialect: door.is_read.then_some(door.dialect),
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
    let model = AskedModel { name: path[place.clone()].to_owned(), place: ModelPlace::Path(place) };
    let is_sse = query.is_some_and(|query| query.split('&').any(|field| field == "alt=sse"));
    Some((Some(model), is_sse && path.ends_with(":streamGenerateContent")))
}

/// Returns the value of one of Everturn's own headers.
fn own<'h>(headers: &'h HeaderMap, name: &str) -> Option<&'h str> {
    headers.get(name).map(|value| value.to_str().unwrap_or_default())
}

fn refused(name: &str, text: &str, expected: &str) -> Refusal {
    let text: String = text.chars().take(64).collect();
    Refusal::new(StatusCode::BAD_REQUEST, format!("the header {name} is {text:?}: write {expected}"))
}

fn budget_of(headers: &HeaderMap) -> Result<Option<std::time::Duration>, Refusal> {
    let Some(text) = own(headers, BUDGET) else { return Ok(None) };
    let read = budget::read(text);
    read.map(Some).ok_or_else(|| refused(BUDGET, text, "a length of time like 10m, 90s or 1h30m"))
}

fn quota_of(headers: &HeaderMap) -> Result<Option<OnQuota>, Refusal> {
    match own(headers, QUOTA) {
        None => Ok(None),
        Some("fail") => Ok(Some(OnQuota::Fail)),
        Some("park") => Ok(Some(OnQuota::Park)),
        Some(text) => Err(refused(QUOTA, text, "fail or park")),
    }
}

fn priority_of(headers: &HeaderMap) -> Result<Priority, Refusal> {
    match own(headers, PRIORITY) {
        None | Some("interactive") => Ok(Priority::Interactive),
        Some("background") => Ok(Priority::Background),
        Some(text) => Err(refused(PRIORITY, text, "interactive or background")),
    }
}

fn whole_of(headers: &HeaderMap) -> Result<bool, Refusal> {
    match own(headers, WHOLE) {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(text) => Err(refused(WHOLE, text, "true or false")),
    }
}

fn session(headers: &HeaderMap) -> Option<String> {
    let named = SESSIONS.iter().filter_map(|name| headers.get(*name)?.to_str().ok());
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
