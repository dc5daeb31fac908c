//! The calls by which people log in at MCP servers: for the owner of the server alone, but for the address on which a login in
//! the browser ends.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{StatusCode, Uri, header},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use everturn_mcp::{Login, LoginError};
use everturn_wire::ErrorBody;
use serde::{Deserialize, Serialize};

use super::McpServers;

/// Where a login in the browser ends.
pub(super) const CALLBACK: &str = "/mcp/callback";

/// Maximum number of logins at once, and how long one may take.
const MOST: usize = 16;
const TIME: Duration = Duration::from_secs(15 * 60);

/// The logins that people are about to make.
#[derive(Clone)]
struct Logins(Arc<Shared>);

struct Shared {
    servers: McpServers,
    /// This server's address, if the caller does not name its own.
    own: String,
    begun: Mutex<VecDeque<Begun>>,
}

struct Begun {
    server: String,
    origin: String,
    login: Login,
    since: Instant,
}

/// Where the browser is.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct From {
    /// The origin of the page, to which the login returns.
    origin: Option<String>,
}

#[derive(Serialize)]
struct To {
    /// The address to open in a browser.
    url: String,
}

/// Returns the routes by which the owner logs in, without access control, and the one on which a login ends. Everybody may call that one,
/// but must know the login's state.
pub(crate) fn routes(servers: &McpServers, scheme: &str, bound: SocketAddr) -> (Router, Router) {
    let (servers, own) = (servers.clone(), format!("{scheme}://{bound}"));
    let logins = Logins(Arc::new(Shared { servers, own, begun: Mutex::default() }));
    let of_owner = Router::new().route("/mcp/{server}/login", post(begin).delete(end));
    (of_owner.with_state(logins.clone()), Router::new().route(CALLBACK, get(finish)).with_state(logins))
}

/// Whether everybody may call this path.
pub(crate) fn is_open(path: &str) -> bool {
    path == CALLBACK
}

impl Logins {
    fn begun(&self) -> MutexGuard<'_, VecDeque<Begun>> {
        let mut begun = self.0.begun.lock().unwrap_or_else(PoisonError::into_inner);
        begun.retain(|begun| begun.since.elapsed() < TIME);
        begun
    }
}

async fn begin(
    State(logins): State<Logins>,
    Path(server): Path<String>,
    from: Option<Json<From>>,
) -> Response {
    let Some(found) = logins.0.servers.named(&server) else { return unknown(&server) };
    let origin = from.and_then(|Json(from)| from.origin).unwrap_or_else(|| logins.0.own.clone());
    let is_origin = origin.parse::<Uri>().is_ok_and(|uri| {
        matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some() && uri.path() == "/"
    });
    if !is_origin || origin.ends_with('/') {
        return refusal(StatusCode::BAD_REQUEST, "`origin` must be like http://127.0.0.1:4777");
    }
    match found.begin_login(&format!("{origin}{CALLBACK}")).await {
        Ok(login) => {
            let url = login.url().to_owned();
            let mut begun = logins.begun();
            begun.truncate(MOST - 1);
            begun.push_front(Begun { server, origin, login, since: Instant::now() });
            Json(To { url }).into_response()
        }
        Err(error) => refusal(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    }
}

async fn end(State(logins): State<Logins>, Path(server): Path<String>) -> Response {
    let Some(found) = logins.0.servers.named(&server) else { return unknown(&server) };
    match found.log_out() {
        Ok(_) => StatusCode::NO_CONTENT.into_response(),
        Err(error) => refusal(StatusCode::UNPROCESSABLE_ENTITY, error.to_string()),
    }
}

async fn finish(State(logins): State<Logins>, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let found = {
        let mut begun = logins.begun();
        let at = begun.iter().position(|begun| is_of(&uri, begun.login.state()));
        at.and_then(|at| begun.remove(at))
    };
    let Some(Begun { server, origin, login, .. }) = found else {
        return page(StatusCode::BAD_REQUEST, "Not logged in", &LoginError::Elsewhere.to_string());
    };
    match login.finish(&format!("{origin}{CALLBACK}?{query}")).await {
        Ok(()) => page(
            StatusCode::OK,
            "Logged in",
            &format!("Everturn can now call the tools of {server}. You can close this page."),
        ),
        Err(error) => page(StatusCode::BAD_REQUEST, "Not logged in", &error.to_string()),
    }
}

/// Whether an address belongs to the login with this state.
pub(crate) fn is_of(uri: &Uri, state: &str) -> bool {
    let query = uri.query().unwrap_or_default();
    query.split('&').any(|part| part.strip_prefix("state=") == Some(state))
}

/// The page on which a login ends. Its address has a code in it, which is not to be passed on.
pub(crate) fn page(status: StatusCode, title: &str, text: &str) -> Response {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title} - Everturn</title>\
         <main style=\"font: 1.1rem/1.5 system-ui; max-width: 36rem; margin: 15vh auto; padding: 0 1rem\">\
         <h1>{title}</h1><p>{escaped}</p></main></html>"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (status, headers, page).into_response()
}

fn unknown(server: &str) -> Response {
    refusal(StatusCode::NOT_FOUND, format!("there is no MCP server {server:?}"))
}

fn refusal(status: StatusCode, why: impl Into<String>) -> Response {
    (status, Json(ErrorBody { error: why.into() })).into_response()
}
