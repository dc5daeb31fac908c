//! Who is let in.

mod address;
mod rules;
mod token;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::StatusCode,
    middleware::{Next, from_fn_with_state},
    response::Response,
};

use crate::refusal::Refusal;
use rules::Rules;

/// A path that answers everyone.
const HEALTH: &str = "/health";

/// Who may come in.
#[derive(Clone)]
pub struct Access {
    /// Where the server listens. The loopback names and addresses with this port are always good hosts; so is every IP
    /// address with it where the server listens for other machines.
    pub bound: SocketAddr,
    /// Further names under which the server is reached, each as `host` (any port) or `host:port`.
    pub hosts: Vec<String>,
    /// Pages of other servers that may use this one, each as `https://host` or `https://host:port`.
    pub origins: Vec<String>,
    /// What clients must show; `None` = nothing.
    pub token: Option<String>,
    /// Whether a path may be read without the token: the page's own files.
    pub is_open: fn(path: &str) -> bool,
}

/// What is wrong with the access rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// A host that is none.
    #[error(
        "{0:?} is not a valid host: write a name or address, with or without a port, like chat.example.com"
    )]
    BadHost(String),
    /// An origin that is none.
    #[error(
        "{0:?} is not a valid origin: write scheme, host and port, without a path, like https://chat.example.com"
    )]
    BadOrigin(String),
    /// A token that no client could show.
    #[error("the token must be 1 or more visible ASCII characters without spaces")]
    BadToken,
}

/// Lets in whom the access rules allow: against pages of other sites, names that were bent to this machine, and those
/// who do not know the token.
#[derive(Clone)]
pub struct Guard {
    rules: Arc<Rules>,
}

impl Guard {
    /// A guard with these rules.
    ///
    /// # Errors
    /// When a host, an origin or the token is not well-formed.
    pub fn new(access: Access) -> Result<Self, AccessError> {
        Ok(Self { rules: Arc::new(Rules::new(access)?) })
    }

    /// Guards everything that the router serves.
    pub fn protect(&self, router: Router) -> Router {
        let router = router.layer(from_fn_with_state(self.rules.clone(), knows_token));
        // Around the token: a browser asks what is allowed before it sends one.
        let router = match self.rules.cors() {
            Some(cors) => router.layer(cors),
            None => router,
        };
        router.layer(from_fn_with_state(self.rules.clone(), comes_from_here))
    }
}

async fn comes_from_here(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    if request.uri().path() != HEALTH
        && let Err(refusal) = rules.check_site(&request)
    {
        return refusal.at(request.uri().path());
    }
    next.run(request).await
}

async fn knows_token(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    if request.uri().path() != HEALTH && !rules.has_token(&request) {
        let why = "this server asks for its token: send it as `Authorization: Bearer <token>`, or for a WebSocket as the \
                   subprotocols `everturn, bearer.<base64url of the token>`";
        return Refusal::new(StatusCode::UNAUTHORIZED, why).at(request.uri().path());
    }
    next.run(request).await
}
