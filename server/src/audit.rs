//! Follows what administrators do over HTTP, and who is refused, into the audit log; shows it to the administrator.

use std::{
    process::ExitCode,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::Result;
use axum::{
    Json, Router,
    extract::{Query, Request, State},
    http::{Method, StatusCode},
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::get,
};
use everturn_terminal::printer::{Ink, Printer};
use everturn_transport_http::{Asked, Peer};
use serde::Deserialize;
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::{
    cli,
    config::{AuditFile, Config, Entry, Environment},
};

/// How many refusals are noted in a minute. Whoever tries tokens can neither fill the disk nor push out other entries soon.
const REFUSALS: u64 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// Entries of a page, and the most that can be asked for.
const PAGE: usize = 100;
const MOST: usize = 1_000;

/// What administrators change: the first part of a path.
const CHANGED: [&str; 4] = ["providers", "mcp", "retry", "calls"];

/// The audit log of a running server; none, if nothing is kept.
#[derive(Clone)]
pub(crate) struct Audit {
    file: Option<AuditFile>,
    refusals: Arc<Mutex<Refusals>>,
}

/// Refusals of the present minute.
struct Refusals {
    since: Instant,
    noted: u64,
    left_out: u64,
}

impl Refusals {
    /// Returns whether one more is noted, and how many were left out before; `None` = it is left out.
    fn next(&mut self, now: Instant) -> Option<u64> {
        if now.duration_since(self.since) >= MINUTE {
            (self.since, self.noted) = (now, 0);
        }
        if self.noted == REFUSALS {
            self.left_out += 1;
            return None;
        }
        self.noted += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[derive(Deserialize)]
struct Page {
    limit: Option<usize>,
    before: Option<i64>,
}

impl Audit {
    pub(crate) fn new(file: Option<AuditFile>) -> Self {
        let refusals = Refusals { since: Instant::now(), noted: 0, left_out: 0 };
        Self { file, refusals: Arc::new(Mutex::new(refusals)) }
    }

    /// Returns the route that shows it, which has no access control of its own.
    pub(crate) fn router(&self) -> Router {
        Router::new().route("/audit", get(show)).with_state(self.clone())
    }

    /// Notes what is asked of a router, which checks who asks.
    pub(crate) fn follow(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(self.clone(), note))
    }
}

async fn show(State(audit): State<Audit>, Query(page): Query<Page>) -> Response {
    let limit = page.limit.unwrap_or(PAGE).min(MOST);
    let Some(file) = audit.file else { return Json(json!({ "entries": [] })).into_response() };
    match spawn_blocking(move || file.latest(limit, page.before)).await {
        Ok(Ok(entries)) => Json(json!({ "entries": entries })).into_response(),
        Ok(Err(error)) => failed(&format!("{error:#}")),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> Response {
    tracing::warn!("{why}");
    let body = json!({ "error": "the audit log cannot be read; the server's log says why" });
    (StatusCode::INTERNAL_SERVER_ERROR, Json(body)).into_response()
}

async fn note(State(audit): State<Audit>, request: Request, next: Next) -> Response {
    let Some(file) = audit.file.clone() else { return next.run(request).await };
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let from = request.extensions().get::<Peer>().map(|Peer(address)| address.ip().to_string());
    let response = next.run(request).await;
    let (asked, status) = (response.extensions().get::<Asked>(), response.status());
    let Some((action, object)) = noted(&method, &path, asked, status) else { return response };
    let left_out = match asked.is_some_and(|asked| asked.is_administrator) {
        true => 0,
        false => {
            let mut refusals = audit.refusals.lock().unwrap_or_else(PoisonError::into_inner);
            let Some(left_out) = refusals.next(Instant::now()) else { return response };
            left_out
        }
    };
    let done = status.is_success() || status.is_informational();
    let outcome = if done { "done".to_owned() } else { status.as_str().to_owned() };
    let who = asked.and_then(|asked| asked.name.as_ref()).map(ToString::to_string);
    let entry = Entry { who, action, object, outcome, from, left_out, ..Entry::default() };
    match spawn_blocking(move || file.add(entry)).await {
        Ok(Err(error)) => tracing::warn!("{error:#}"),
        Err(error) => tracing::warn!(%error, "the audit log cannot be written"),
        Ok(Ok(())) => {}
    }
    response
}

/// Returns what is noted of a request: what it does, without the object's name, and to what; `None` = nothing.
fn noted(
    method: &Method,
    path: &str,
    asked: Option<&Asked>,
    status: StatusCode,
) -> Option<(String, Option<String>)> {
    let Some(asked) = asked else {
        // Nothing of the request: a token can be anywhere in it.
        return (status == StatusCode::UNAUTHORIZED).then(|| ("sign-in".to_owned(), None));
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
        false if status == StatusCode::FORBIDDEN => None,
        false => return None,
    };
    let object = at.map(|at| parts[at].to_owned());
    let named = |(place, part): (usize, &&str)| {
        if Some(place) == at { "{id}".to_owned() } else { (*part).to_owned() }
    };
    let route = match asked.is_administrator {
        true => parts.iter().enumerate().map(named).collect::<Vec<_>>().join("/"),
        // A caller chooses the rest.
        false => first.to_owned(),
    };
    Some((format!("{method} /{route}"), object))
}

/// Runs `everturn audit`.
pub(crate) fn list(args: &cli::Audit, environment: &Environment<'_>) -> Result<ExitCode> {
    let entries = Config::callers(&args.flags(), environment)?.audit.latest(args.limit, None)?;
    let mut out = Printer::of_stdout();
    if args.json {
        out.line(Ink::Plain, &serde_json::to_string_pretty(&entries)?)?;
    }
    for entry in entries.iter().filter(|_| !args.json) {
        let Entry { at, who, action, object, outcome, from, left_out, .. } = entry;
        let text = |text: &Option<String>| text.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
        let nobody = if action == "sign-in" { "(nobody)" } else { "(administrator)" };
        let who = who.as_deref().unwrap_or(nobody);
        let from = from.as_deref().unwrap_or("this machine");
        let more =
            if *left_out == 0 { String::new() } else { format!(", {left_out} refusals left out before") };
        out.line(
            Ink::Plain,
            &format!("{at}  {who}  {action}{}  {outcome}, from {from}{more}", text(object)),
        )?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_noted_so_often_and_the_rest_is_counted() {
        let start = Instant::now();
        let mut refusals = Refusals { since: start, noted: 0, left_out: 0 };
        let noted = (0..1_000).filter(|_| refusals.next(start).is_some()).count();
        assert_eq!((noted, refusals.next(start + MINUTE)), (10, Some(990)));
        assert_eq!(refusals.next(start + MINUTE), Some(0));
    }
}
