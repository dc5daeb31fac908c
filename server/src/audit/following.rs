//! Follows one request, and the socket that it may become.

use std::{
    collections::BTreeSet,
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::Instant,
};

use axum::{
    extract::Request,
    http::{Method, StatusCode},
};
use everturn_orchestrator::Witness;
use everturn_transport_http::{Asked, Follower, Peer};
use everturn_wire::ConversationId;
use tokio::{runtime::Handle, task::JoinHandle};

use super::{About, Audit};
use crate::config::{AuditFile, Entry};

/// How many conversations of one request are noted.
const MOST_NAMED: usize = 20;

/// What administrators change: the first part of a path.
const CHANGED: [&str; 5] = ["providers", "mcp", "retry", "calls", "callers"];

/// What follows `v1` in the paths of calls that pass through.
const DOORS: [&str; 6] = ["messages", "responses", "chat", "completions", "embeddings", "models"];

/// A request that is being answered, or the socket that it became.
pub(super) struct Following {
    audit: Audit,
    file: AuditFile,
    method: Method,
    path: String,
    from: Option<String>,
    asked: Arc<OnceLock<Result<Asked, &'static str>>>,
    seen: Mutex<Seen>,
}

/// Conversations of callers.
enum Seen {
    /// Those that the request named, to be noted when it is over.
    Request(BTreeSet<String>),
    /// Each is noted at once.
    Socket,
}

impl Following {
    pub(super) fn new(audit: &Audit, request: &Request) -> Option<Self> {
        Some(Self {
            audit: audit.clone(),
            file: audit.file.clone()?,
            method: request.method().clone(),
            path: request.uri().path().to_owned(),
            from: request.extensions().get::<Peer>().map(|Peer(address)| address.ip().to_string()),
            asked: Arc::default(),
            seen: Mutex::new(Seen::Request(BTreeSet::new())),
        })
    }

    pub(super) fn follower(self: &Arc<Self>) -> Follower {
        let following = self.clone();
        let witness = move |command: &str, id: &ConversationId| following.sees(command, id);
        Follower { asked: self.asked.clone(), witness: Witness::new(witness) }
    }

    fn sees(&self, command: &str, id: &ConversationId) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut *seen {
            Seen::Request(ids) if ids.len() < MOST_NAMED => _ = ids.insert(id.to_string()),
            Seen::Request(_) => {}
            Seen::Socket => {
                let action = format!("WebSocket {command}").trim_end().to_owned();
                self.write(vec![self.entry(action, Some(id.to_string()), "asked")]);
            }
        }
    }

    /// The request is over: with this status, or because its client is gone.
    fn over(&self, status: Option<StatusCode>, about: Option<&About>) -> Option<JoinHandle<()>> {
        let next = if status == Some(StatusCode::SWITCHING_PROTOCOLS) {
            Seen::Socket
        } else {
            Seen::Request(BTreeSet::new())
        };
        let seen = std::mem::replace(&mut *self.seen.lock().unwrap_or_else(PoisonError::into_inner), next);
        let named = if let Seen::Request(ids) = seen { ids } else { BTreeSet::new() };
        let asked = self.asked.get()?.as_ref();
        let outcome = match &status {
            Some(status) if status.is_success() || status.is_informational() => "done",
            Some(status) => status.as_str(),
            None => "client left",
        };
        let mut entries = Vec::new();
        if let Some((action, object)) = noted(&self.method, &self.path, asked, status) {
            let entry =
                self.entry(action, object.or_else(|| about.map(|About(about)| about.clone())), outcome);
            let is_refusal = !asked.is_ok_and(|asked| asked.is_administrator);
            let refusals =
                || self.audit.refusals.lock().unwrap_or_else(PoisonError::into_inner).next(Instant::now());
            let left_out = if is_refusal { refusals() } else { Some(0) };
            entries.extend(left_out.map(|left_out| Entry { left_out, ..entry }));
        }
        let known = entries.first().and_then(|entry| entry.object.clone());
        // The others are in its body or headers.
        for id in named.into_iter().filter(|id| Some(id) != known.as_ref()) {
            let first = self.path.split('/').nth(1).unwrap_or_default();
            entries.push(self.entry(format!("{} /{first}", self.method), Some(id), outcome));
        }
        self.write(entries)
    }

    fn entry(&self, action: String, object: Option<String>, outcome: &str) -> Entry {
        let asked = self.asked.get();
        let who = asked.and_then(|asked| asked.as_ref().ok()?.name.as_ref()).map(ToString::to_string);
        let why = asked.and_then(|asked| asked.as_ref().err()).map(ToString::to_string);
        let (outcome, from) = (outcome.to_owned(), self.from.clone());
        Entry { who, action, object, outcome, why, from, ..Entry::default() }
    }

    fn write(&self, entries: Vec<Entry>) -> Option<JoinHandle<()>> {
        if entries.is_empty() {
            return None;
        }
        let file = self.file.clone();
        let write = move || {
            for entry in entries {
                if let Err(error) = file.add(entry) {
                    tracing::warn!("{error:#}");
                }
            }
        };
        // No runtime: the process is ending.
        Some(Handle::try_current().ok()?.spawn_blocking(write))
    }
}

/// A request that has no answer yet. Its client may leave before it has.
pub(super) struct Pending(Option<Arc<Following>>);

impl Pending {
    pub(super) fn new(following: Arc<Following>) -> Self {
        Self(Some(following))
    }

    pub(super) fn over(mut self, status: StatusCode, about: Option<&About>) -> Option<JoinHandle<()>> {
        self.0.take()?.over(Some(status), about)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(following) = self.0.take() {
            following.over(None, None);
        }
    }
}

/// Returns what is noted of a request: what it does, without the object's name, and to what; `None` = nothing.
fn noted(
    method: &Method,
    path: &str,
    asked: Result<&Asked, &&str>,
    status: Option<StatusCode>,
) -> Option<(String, Option<String>)> {
    let Ok(asked) = asked else {
        // Nothing of the request: a token can be anywhere in it.
        return Some(("sign-in".to_owned(), None));
    };
    let path = path.replace("%40", "@");
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let first = *parts.first()?;
    let reads = matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS);
    let at = parts.iter().position(|part| part.contains('@'));
    let at = match asked.is_administrator {
        true if !reads && CHANGED.contains(&first) => at.or((parts.len() > 1).then_some(1)),
        // Something of another caller.
        true => Some(at?),
        false if status == Some(StatusCode::FORBIDDEN) => None,
        false => return None,
    };
    let object = at.map(|at| parts[at].to_owned());
    let named = |(place, part): (usize, &&str)| {
        if Some(place) == at { "{id}".to_owned() } else { (*part).to_owned() }
    };
    let route = match asked.is_administrator {
        true => parts.iter().enumerate().map(named).collect::<Vec<_>>().join("/"),
        // A caller chooses the rest, but for the names of doors.
        false => match parts.get(1).filter(|part| DOORS.contains(part)) {
            Some(door) => format!("{first}/{door}"),
            None => first.to_owned(),
        },
    };
    Some((format!("{method} /{route}"), object))
}
