//! The calls that list callers, and make, limit, replace and revoke their tokens: for the administrator alone.
//!
//! Callers of the configuration file are shown, and only changed there. The running server notices a change within a second.

use std::{error::Error, fmt, sync::Arc};

use anyhow::Result;
use axum::{
    Json, Router,
    body::Body,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse as _, Response},
    routing::{delete, get, post, put},
};
use clap::ValueEnum as _;
use everturn_orchestrator::Scope;
use everturn_transport_http::{KnownCaller, TokenHash};
use everturn_wire::{
    CallerInfo, CallerLimits, CallerList, CallerName, MadeToken, NewCaller, NewToken, Priority,
};
use serde::Serialize;
use tokio::task::spawn_blocking;

use crate::{
    audit::About,
    body::{read, refusal},
    config::{Amount, CallersFile, Config, KeptCaller, ScopeName, TermsTable, USUAL_SCOPES},
    token::{Listed, fresh, listed},
};

/// What the bodies look like.
const NEW: &str = "with \"name\", and may have \"scopes\", \"until\" and limits";
const LIMITS: &str = "that may have \"requestsPerMinute\", \"tokensPerMinute\", \"tokensPerDay\", \"parallel\", \"moneyPerDay\", \"models\" and \
                      \"priority\"";
const UNTIL: &str = "that may have \"until\"";

/// What of a server's callers can be changed.
#[derive(Clone)]
pub(crate) struct Changeable {
    file: Option<CallersFile>,
    configured: Arc<[KnownCaller]>,
    /// Whether this is a server of a cluster, of which each would have its own file.
    is_shared: bool,
    /// Whether there is an administrator without being a caller.
    has_token: bool,
}

/// Why something is not done.
#[derive(Debug)]
struct Refused {
    status: StatusCode,
    why: String,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}

impl Error for Refused {}

fn refused(status: StatusCode, why: String) -> anyhow::Error {
    Refused { status, why }.into()
}

/// Returns the routes, which have no access control of their own.
pub(crate) fn router(config: &Config) -> Router {
    let changeable = Changeable {
        file: config.callers_file.clone(),
        configured: config.callers.clone().into(),
        is_shared: config.cluster.is_some(),
        has_token: config.token.is_some(),
    };
    Router::new()
        .route("/callers", get(list).post(make))
        .route("/callers/{name}", delete(revoke))
        .route("/callers/{name}/limits", put(limit))
        .route("/callers/{name}/rotate", post(rotate))
        .with_state(changeable)
}

async fn list(State(callers): State<Changeable>) -> Response {
    answer(StatusCode::OK, None, move || {
        let callers = listed(callers.file.as_ref(), &callers.configured)?;
        Ok(CallerList { callers: callers.into_iter().map(info).collect() })
    })
    .await
}

async fn make(State(callers): State<Changeable>, body: Body) -> Result<Response, Response> {
    let new: NewCaller = read(body, NEW).await?;
    let name = new.name.clone();
    Ok(answer(StatusCode::CREATED, Some(name), move || callers.make(new)).await)
}

async fn limit(
    State(callers): State<Changeable>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, Response> {
    let limits: CallerLimits = read(body, LIMITS).await?;
    let change = move || {
        let terms = table(limits)?;
        callers.change(&name, |caller| caller.terms = terms)
    };
    Ok(answer(StatusCode::OK, None, change).await)
}

async fn rotate(
    State(callers): State<Changeable>,
    Path(name): Path<String>,
    body: Body,
) -> Result<Response, Response> {
    let NewToken { until } = read(body, UNTIL).await?;
    let change = move || {
        let token = fresh();
        let caller = callers.change(&name, |caller| {
            caller.token_hash = Some(TokenHash::of(token.as_bytes()).to_string());
            caller.until = until;
        })?;
        Ok(MadeToken { token, caller })
    };
    Ok(answer(StatusCode::OK, None, change).await)
}

async fn revoke(State(callers): State<Changeable>, Path(name): Path<String>) -> Response {
    answer(StatusCode::OK, None, move || callers.change(&name, |caller| caller.token_hash = None)).await
}

impl Changeable {
    fn make(&self, new: NewCaller) -> Result<MadeToken> {
        let NewCaller { name, scopes, until, limits } = new;
        CallerName::parse(&name)?;
        let scope = |text: &String| {
            let why = || format!("{text:?} is not a valid scope: use chat, calls, proxy or admin");
            ScopeName::from_str(text, false).map_err(|_| refused(StatusCode::UNPROCESSABLE_ENTITY, why()))
        };
        let scopes = match scopes.is_empty() {
            true => USUAL_SCOPES.to_vec(),
            false => scopes.iter().map(scope).collect::<Result<_>>()?,
        };
        let token = fresh();
        let token_hash = Some(TokenHash::of(token.as_bytes()).to_string());
        let caller = KeptCaller { name: name.clone(), scopes, token_hash, until, terms: table(limits)? };
        caller.known()?;
        self.kept()?.change(|kept| {
            let is_taken = self.is_configured(&name) || kept.iter().any(|kept| kept.name == name);
            if is_taken {
                let why = format!("caller {name} already exists: choose another name, or rotate its token");
                return Err(refused(StatusCode::CONFLICT, why));
            }
            kept.push(caller);
            self.keeps_administrator(kept)
        })?;
        Ok(MadeToken { token, caller: self.info(&name)? })
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut KeptCaller)) -> Result<CallerInfo> {
        if self.is_configured(name) {
            let why = format!("{name} is in the configuration file, and can only be changed there");
            return Err(refused(StatusCode::CONFLICT, why));
        }
        self.kept()?.change(|kept| {
            let Some(caller) = kept.iter_mut().find(|caller| caller.name == name) else {
                return Err(refused(StatusCode::NOT_FOUND, format!("there is no caller {name:?}")));
            };
            change(caller);
            caller.known()?;
            self.keeps_administrator(kept)
        })?;
        self.info(name)
    }

    /// As soon as there is a caller, everybody needs a token: somebody must have one of an administrator.
    fn keeps_administrator(&self, kept: &[KeptCaller]) -> Result<()> {
        let now = everturn_orchestrator::Clock::now(&everturn_orchestrator::SystemClock::new()).0;
        let is_one = |caller: &KnownCaller| {
            let is_valid = caller.token.is_some() && caller.until.is_none_or(|until| until > now);
            is_valid && caller.scopes.contains(&Scope::Admin)
        };
        let kept = kept.iter().map(KeptCaller::known).collect::<Result<Vec<_>>>()?;
        if self.has_token || self.configured.iter().chain(&kept).any(is_one) {
            return Ok(());
        }
        let why = "then nobody could sign in as the administrator: first make a caller with the scope admin, or start the server with \
                   EVERTURN_TOKEN";
        Err(refused(StatusCode::CONFLICT, why.to_owned()))
    }

    fn is_configured(&self, name: &str) -> bool {
        self.configured.iter().any(|caller| caller.name.as_str() == name)
    }

    fn kept(&self) -> Result<&CallersFile> {
        self.file.as_ref().ok_or_else(|| {
            let why = match self.is_shared {
                true => "servers of a cluster take their callers from their configuration files: name them there, for each server",
                false => "this server keeps nothing on disk: name its callers in the configuration file",
            };
            refused(StatusCode::CONFLICT, why.to_owned())
        })
    }

    fn info(&self, name: &str) -> Result<CallerInfo> {
        let all = listed(self.file.as_ref(), &self.configured)?;
        let found = all.into_iter().find(|listed| listed.name == name);
        found.map(info).ok_or_else(|| refused(StatusCode::NOT_FOUND, format!("there is no caller {name:?}")))
    }
}

/// Does something with the file, and answers with what comes of it. `about`: the caller, if its name is not in the path.
async fn answer<T: Serialize + Send + 'static>(
    status: StatusCode,
    about: Option<String>,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Response {
    let mut response = match spawn_blocking(work).await {
        Ok(Ok(answer)) => (status, Json(answer)).into_response(),
        Ok(Err(error)) => match error.downcast::<Refused>() {
            Ok(Refused { status, why }) => refusal(status, why),
            // It quotes nothing of the file.
            Err(error) => refusal(StatusCode::UNPROCESSABLE_ENTITY, format!("{error:#}")),
        },
        Err(error) => refusal(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
    };
    if let Some(about) = about {
        response.extensions_mut().insert(About(about));
    }
    response
}

fn info(listed: Listed) -> CallerInfo {
    let Listed { name, scopes, status, until, terms, from } = listed;
    let money_per_day = terms.money_per_day.map(f64::from);
    let TermsTable {
        requests_per_minute, tokens_per_minute, tokens_per_day, parallel, models, priority, ..
    } = terms;
    CallerInfo {
        name,
        scopes: scopes.into_iter().map(str::to_owned).collect(),
        status: status.to_owned(),
        until,
        configured: from == Listed::CONFIGURED,
        limits: CallerLimits {
            requests_per_minute,
            tokens_per_minute,
            tokens_per_day,
            parallel,
            money_per_day,
            models,
            priority,
        },
    }
}

fn table(limits: CallerLimits) -> Result<TermsTable> {
    let CallerLimits { requests_per_minute, tokens_per_minute, tokens_per_day, parallel, .. } = limits;
    let money = limits.money_per_day.map(Amount::try_from).transpose();
    let money_per_day = money.map_err(|why| refused(StatusCode::UNPROCESSABLE_ENTITY, why))?;
    let priority = limits.priority.filter(|priority| *priority == Priority::Background);
    let models = limits.models;
    Ok(TermsTable {
        requests_per_minute,
        tokens_per_minute,
        tokens_per_day,
        parallel,
        money_per_day,
        models,
        priority,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_file_callers_are_those_of_the_configuration() {
        for (is_shared, expected) in [(true, "servers of a cluster"), (false, "keeps nothing on disk")] {
            let callers = Changeable { file: None, configured: Arc::default(), is_shared, has_token: true };
            let error = callers.change("ann", |_| ()).unwrap_err();
            let Refused { status, why } = error.downcast().unwrap();
            assert!(status == StatusCode::CONFLICT && why.contains(expected), "{why}");
        }
    }
}
