//! Who is let in.

mod address;
mod token;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    extract::{Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{AUTHORIZATION, CONTENT_TYPE, HOST, ORIGIN, UPGRADE},
    },
    middleware::{Next, from_fn_with_state},
    response::{IntoResponse, Response},
};
use tower_http::cors::CorsLayer;

use crate::refusal::Refusal;
use address::{Host, Origin};
use token::Token;

/// A path that answers everyone.
const HEALTH: &str = "/health";
/// How long a browser may keep what it was told about other origins.
const PREFLIGHT_AGE: std::time::Duration = std::time::Duration::from_secs(3600);

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
pub enum AccessError {
    /// A host that is none.
    #[error("{0:?} is no host: write a name or address, with or without a port, like chat.example.com")]
    BadHost(String),
    /// An origin that is none.
    #[error("{0:?} is no origin: write scheme, host and port, without a path, like https://chat.example.com")]
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

struct Rules {
    bound: SocketAddr,
    hosts: Vec<Host>,
    origins: Vec<Origin>,
    token: Option<Token>,
    is_open: fn(&str) -> bool,
}

impl Guard {
    /// A guard with these rules.
    ///
    /// # Errors
    /// When a host, an origin or the token is not well-formed.
    pub fn new(access: Access) -> Result<Self, AccessError> {
        let hosts = access
            .hosts
            .iter()
            .map(|text| Host::parse(text).ok_or_else(|| AccessError::BadHost(text.clone())));
        let origins = access
            .origins
            .iter()
            .map(|text| Origin::parse(text).ok_or_else(|| AccessError::BadOrigin(text.clone())));
        let rules = Rules {
            bound: access.bound,
            hosts: hosts.collect::<Result<_, _>>()?,
            origins: origins.collect::<Result<_, _>>()?,
            token: access.token.map(|text| Token::new(&text).ok_or(AccessError::BadToken)).transpose()?,
            is_open: access.is_open,
        };
        Ok(Self { rules: Arc::new(rules) })
    }

    /// Guards everything that the router serves.
    pub fn protect(&self, router: Router) -> Router {
        let router = router.layer(from_fn_with_state(self.rules.clone(), knows_token));
        // Around the token: a browser asks what is allowed before it sends one.
        let router = if self.rules.origins.is_empty() { router } else { router.layer(self.rules.cors()) };
        router.layer(from_fn_with_state(self.rules.clone(), comes_from_here))
    }
}

impl Rules {
    fn cors(&self) -> CorsLayer {
        let origins =
            self.origins.iter().filter_map(|origin| HeaderValue::from_str(&origin.to_string()).ok());
        CorsLayer::new()
            .allow_origin(origins.collect::<Vec<_>>())
            .allow_methods([Method::GET, Method::POST, Method::DELETE])
            .allow_headers([AUTHORIZATION, CONTENT_TYPE, HeaderName::from_static("last-event-id")])
            .expose_headers([HeaderName::from_static("x-conversation-id")])
            .max_age(PREFLIGHT_AGE)
    }

    /// The host that was asked for, if it is one of ours.
    fn host(&self, request: &Request) -> Result<Host, Refusal> {
        let mut named = request.headers().get_all(HOST).iter();
        let host = match (named.next(), named.next(), request.uri().authority()) {
            (Some(host), None, None) => host.to_str().ok().and_then(Host::parse),
            (None, None, Some(authority)) => Host::parse(authority.as_str()),
            (Some(host), None, Some(authority)) if host.as_bytes() == authority.as_str().as_bytes() => {
                Host::parse(authority.as_str())
            }
            _ => None,
        };
        let host =
            host.ok_or_else(|| Refusal::bad("the request must have one Host header with a host in it"))?;
        if self.is_ours(&host) {
            return Ok(host);
        }
        let why = format!(
            "this server is not known as {host}: use a loopback address with its port, or add the name to its allowed hosts"
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, why))
    }

    fn is_ours(&self, host: &Host) -> bool {
        // An address in numbers cannot be bent to this machine as a name can.
        let by_itself = host.is_loopback() || (host.is_address() && !self.bound.ip().is_loopback());
        (by_itself && host.port_or(80) == self.bound.port())
            || self.hosts.iter().any(|ours| ours.covers(host))
    }

    /// Whether the request is made by this server's own page, an allowed one, or no page at all.
    fn check_origin(&self, host: &Host, headers: &HeaderMap) -> Result<(), Refusal> {
        let Some(text) = headers.get(ORIGIN) else { return Ok(()) };
        let origin = text.to_str().ok().and_then(Origin::parse);
        if origin.is_some_and(|origin| origin.is_at(host) || self.origins.contains(&origin)) {
            return Ok(());
        }
        let shown = String::from_utf8_lossy(text.as_bytes());
        let why =
            format!("pages of {shown} may not use this server: add that to its allowed origins to change it");
        Err(Refusal::new(StatusCode::FORBIDDEN, why))
    }

    fn needs_token(&self, request: &Request) -> bool {
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let path = request.uri().path();
        let is_page = reads && !request.headers().contains_key(UPGRADE) && (self.is_open)(path);
        !is_page && path != HEALTH
    }
}

async fn comes_from_here(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    if request.uri().path() != HEALTH {
        let checked = rules.host(&request).and_then(|host| rules.check_origin(&host, request.headers()));
        if let Err(refusal) = checked {
            return refusal.into_response();
        }
    }
    next.run(request).await
}

async fn knows_token(State(rules): State<Arc<Rules>>, request: Request, next: Next) -> Response {
    if let Some(token) = &rules.token
        && rules.needs_token(&request)
        && !token.is_shown(request.headers())
    {
        let why = "this server asks for its token: send it as `Authorization: Bearer <token>`, or for a WebSocket as the \
                   subprotocols `everturn, bearer.<base64url of the token>`";
        return Refusal::new(StatusCode::UNAUTHORIZED, why).into_response();
    }
    next.run(request).await
}
