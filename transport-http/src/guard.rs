//! Access control.

mod address;
mod known;
mod named;
mod rules;
mod stranger;
mod token;

use std::{
    net::SocketAddr,
    sync::{Arc, OnceLock},
};

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::{Next, from_fn_with_state, map_response},
    response::Response,
};

use everturn_orchestrator::Witness;
use everturn_wire::CallerName;

use crate::{refusal::Refusal, response_headers, router::refused};
pub use known::{Callers, KnownCaller, TokenHash};
use rules::Rules;

/// A path that is open to everyone.
const HEALTH: &str = "/health";

/// The access rules.
#[derive(Clone)]
pub struct Access {
    /// The server's address. The loopback names and addresses with its port are always accepted as hosts; so is any IP
    /// address with its port, if the server listens for other machines.
    pub bound: SocketAddr,
    /// Further names of the server, each as `host` (any port) or `host:port`.
    pub hosts: Vec<String>,
    /// Origins of other servers' pages that may use this server, each as `https://host` or `https://host:port`.
    pub origins: Vec<String>,
    /// The administrator's token. Without one, and without callers, everybody is the administrator.
    pub token: Option<String>,
    /// The callers. A request is passed on with the [`Caller`](everturn_orchestrator::Caller) who made it.
    pub callers: Callers,
    /// The header in which a caller with the scope [`Proxy`](everturn_orchestrator::Scope::Proxy) says whose request it
    /// passes on; `None` = `x-everturn-caller`.
    pub caller_header: Option<String>,
    /// Whether a path may be read without the token: the page's own files.
    pub is_open: fn(path: &str) -> bool,
}

/// Placed in the extensions of a request, it learns who made the request, or why that is not known, and what an administrator
/// does with conversations of callers.
#[derive(Clone)]
pub struct Follower {
    /// Is told who asks, or else why that is not known.
    pub asked: Arc<OnceLock<Result<Asked, &'static str>>>,
    /// Is told of conversations.
    pub witness: Witness,
}

/// Who asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Its name, also if it is an administrator; `None` = the administrator with the server's own token, or nobody.
    pub name: Option<CallerName>,
    /// Whether it is an administrator.
    pub is_administrator: bool,
}

/// Why the access rules are invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// A host is invalid.
    #[error(
        "{0:?} is not a valid host: write a name or address, with or without a port, like chat.example.com"
    )]
    BadHost(String),
    /// An origin is invalid.
    #[error(
        "{0:?} is not a valid origin: write scheme, host and port, without a path, like https://chat.example.com"
    )]
    BadOrigin(String),
    /// The header that names callers could not be one.
    #[error("{0:?} is not a valid name of a header: write one like x-forwarded-user")]
    BadHeader(String),
    /// The token contains characters that no client could send.
    #[error("the token must be 1 or more visible ASCII characters without spaces")]
    BadToken,
}

/// Applies the access rules. Protects against pages of other sites, DNS rebinding, and clients without the token.
#[derive(Clone)]
pub struct Guard {
    rules: Arc<Rules>,
}

impl Guard {
    /// Creates a guard with these rules.
    ///
    /// # Errors
    /// Returns an error if a host, an origin or the token is malformed.
    pub fn new(access: Access) -> Result<Self, AccessError> {
        Ok(Self { rules: Arc::new(Rules::new(access)?) })
    }

    /// Restricts what the router serves to the owner of the server: the administrator, or this machine if nobody needs a token.
    /// Needs [`serve`](crate::serve), which knows where requests come from. Does not replace [`protect`](Self::protect).
    pub fn owners(&self, router: Router) -> Router {
        router.layer(from_fn_with_state(self.rules.clone(), is_owner))
    }

    /// Protects everything that the router serves.
    pub fn protect(&self, router: Router) -> Router {
        // Outermost, because refusals and preflight responses need them, too.
        let headers = map_response(response_headers::complete);
        let site = from_fn_with_state(self.rules.clone(), comes_from_here);
        let token = from_fn_with_state(self.rules.clone(), knows_token);
        // In one layer, because the router boxes each, and clones all of them for each request.
        match self.rules.cors() {
            // Outside of the token check, because browsers send preflight requests without a token.
            Some(cors) => router.layer((headers, site, cors, token)),
            None => router.layer((headers, site, token)),
        }
    }
}

async fn comes_from_here(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    if request.uri().path() != HEALTH
        && let Err(refusal) = rules.check_site(&request)
    {
        return refused(refusal, request.uri().path());
    }
    next.run(request).await
}

async fn is_owner(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    match rules.is_owner(&request) {
        true => next.run(request).await,
        false => {
            let why = match rules.asks() {
                true => "only with an administrator's token: EVERTURN_TOKEN, or one with the scope admin",
                false => {
                    "only from a browser or terminal on the server's own machine, or with its token (EVERTURN_TOKEN)"
                }
            };
            refused(Refusal::new(StatusCode::FORBIDDEN, why), request.uri().path())
        }
    }
}

async fn knows_token(State(rules): State<Arc<Rules>>, mut request: Request, next: Next) -> Response {
    if request.uri().path() == HEALTH {
        return next.run(request).await;
    }
    let follower = request.extensions_mut().remove::<Follower>();
    let (caller, header) = match rules.caller(&request) {
        Ok(found) => found,
        Err(stranger) => {
            let _ = follower.map(|follower| follower.asked.set(Err(stranger.brief())));
            let refusal = Refusal::new(StatusCode::UNAUTHORIZED, stranger.why());
            return refused(refusal, request.uri().path());
        }
    };
    let caller = match follower {
        Some(Follower { asked, witness }) => {
            let (name, is_administrator) = (rules.name(&request, &caller), caller.is_administrator());
            let _ = asked.set(Ok(Asked { name, is_administrator }));
            caller.witnessed_by(witness)
        }
        None => caller,
    };
    rules.note(&mut request, caller, header.as_ref());
    next.run(request).await
}
