//! Follows what administrators do over HTTP, and who is refused, into the audit log; shows it to the administrator.

mod following;

use std::{
    process::ExitCode,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use anyhow::Result;
use axum::{
    Json, Router,
    extract::{Query, Request, State},
    http::StatusCode,
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse as _, Response},
    routing::get,
};
use everturn_terminal::printer::{Ink, Printer};
use everturn_wire::AuditLog;
use serde::Deserialize;
use serde_json::json;
use tokio::task::spawn_blocking;

use crate::{
    cli,
    config::{AuditFile, Config, Entry, Environment},
};
use following::{Following, Pending};

/// How many refusals are noted in a minute. Whoever tries tokens can neither fill the disk nor push out other entries soon.
const REFUSALS: u64 = 10;
const MINUTE: Duration = Duration::from_secs(60);

/// Entries of a page, and the most that can be asked for.
const PAGE: usize = 100;
const MOST: usize = 1_000;

/// What a request was about, if that is not in its path: in the extensions of its response.
#[derive(Clone, Debug)]
pub(crate) struct About(pub(crate) String);

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
    let Some(file) = audit.file else { return Json(AuditLog::default()).into_response() };
    match spawn_blocking(move || file.latest(limit, page.before)).await {
        Ok(Ok(entries)) => Json(AuditLog { entries }).into_response(),
        Ok(Err(error)) => failed(&format!("{error:#}")),
        Err(error) => failed(&error.to_string()),
    }
}

fn failed(why: &str) -> Response {
    tracing::warn!("{why}");
    let body = json!({ "error": "the audit log cannot be read; the server's log says why" });
    (StatusCode::INTERNAL_SERVER_ERROR, Json(body)).into_response()
}

async fn note(State(audit): State<Audit>, mut request: Request, next: Next) -> Response {
    let Some(following) = Following::new(&audit, &request) else { return next.run(request).await };
    let following = Arc::new(following);
    request.extensions_mut().insert(following.follower());
    let pending = Pending::new(following);
    let response = next.run(request).await;
    if let Some(entries) = pending.over(response.status(), response.extensions().get()) {
        // Before its client knows the answer.
        let _ = entries.await;
    }
    response
}

/// Runs `everturn audit`.
pub(crate) fn list(args: &cli::Audit, environment: &Environment<'_>) -> Result<ExitCode> {
    let entries = Config::callers(&args.flags(), environment)?.audit.latest(args.limit, None)?;
    let mut out = Printer::of_stdout();
    if args.json {
        out.line(Ink::Plain, &serde_json::to_string_pretty(&entries)?)?;
    }
    for entry in entries.iter().filter(|_| !args.json) {
        let Entry { at, who, action, object, outcome, why, from, left_out, .. } = entry;
        let text = |before: &str, text: &Option<String>| {
            text.as_deref().map(|text| format!("{before}{text}")).unwrap_or_default()
        };
        let nobody = if action == "sign-in" { "(nobody)" } else { "(administrator)" };
        let who = who.as_deref().unwrap_or(nobody);
        let from = from.as_deref().unwrap_or("this machine");
        let more =
            if *left_out == 0 { String::new() } else { format!(", {left_out} refusals left out before") };
        out.line(
            Ink::Plain,
            &format!(
                "{at}  {who}  {action}{}  {outcome}{}, from {from}{more}",
                text(" ", object),
                text(": ", why)
            ),
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
