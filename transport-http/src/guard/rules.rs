//! The access rules, applied to requests.

use std::{net::SocketAddr, time::Duration};

use axum::{
    extract::Request,
    http::{
        HeaderMap, HeaderName, HeaderValue, Method, StatusCode,
        header::{HOST, ORIGIN, UPGRADE},
    },
};
use everturn_orchestrator::{Caller, Scope};
use everturn_wire::CallerName;
use tower_http::cors::CorsLayer;

use super::{
    Access, AccessError, Callers, TokenHash,
    address::{Host, Origin},
    named,
    stranger::Stranger,
    token,
};
use crate::{connection::Peer, refusal::Refusal};

/// How long a browser may cache a preflight response.
const PREFLIGHT_AGE: Duration = Duration::from_secs(3600);

/// Headers by which a proxy says that it forwards a request.
const FORWARDED: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

/// A shorter token of the administrator might be a part of any URL, in characters.
const LONG: usize = 16;

/// The header in which a proxy names the caller of a request, unless another one is configured.
const NAMED: HeaderName = HeaderName::from_static("x-everturn-caller");

/// Headers that pages of allowed origins may send: those that the API reads, and those that the vendors' SDKs add.
const HEADERS: [&str; 27] = [
    "anthropic-beta",
    "anthropic-dangerous-direct-browser-access",
    "anthropic-version",
    "authorization",
    "content-type",
    "everturn-budget",
    "everturn-priority",
    "everturn-quota",
    "everturn-whole",
    "idempotency-key",
    "last-event-id",
    "traceparent",
    "tracestate",
    "x-api-key",
    "x-conversation-id",
    "x-everturn-token",
    "x-goog-api-client",
    "x-goog-api-key",
    "x-stainless-arch",
    "x-stainless-helper-method",
    "x-stainless-lang",
    "x-stainless-os",
    "x-stainless-package-version",
    "x-stainless-retry-count",
    "x-stainless-runtime",
    "x-stainless-runtime-version",
    "x-stainless-timeout",
];

/// Headers of answers that such pages may read.
const SHOWN: [&str; 4] = ["everturn-ignored", "link", "x-conversation-id", "x-cursor"];

/// The validated access rules.
pub(super) struct Rules {
    bound: SocketAddr,
    hosts: Vec<Host>,
    origins: Vec<Origin>,
    token: Option<TokenHash>,
    callers: Callers,
    caller_header: HeaderName,
    is_open: fn(&str) -> bool,
}

impl Rules {
    pub(super) fn new(access: Access) -> Result<Self, AccessError> {
        let host = |text: String| Host::parse(&text).ok_or(AccessError::BadHost(text));
        let origin = |text: String| Origin::parse(&text).ok_or(AccessError::BadOrigin(text));
        let token = |text: String| token::administrators(&text).ok_or(AccessError::BadToken);
        let header = |text: String| text.parse().map_err(|_| AccessError::BadHeader(text));
        let caller_header = access.caller_header.map(header).transpose()?;
        Ok(Self {
            bound: access.bound,
            hosts: access.hosts.into_iter().map(host).collect::<Result<_, _>>()?,
            origins: access.origins.into_iter().map(origin).collect::<Result<_, _>>()?,
            token: access.token.map(token).transpose()?,
            callers: access.callers,
            caller_header: caller_header.unwrap_or(NAMED),
            is_open: access.is_open,
        })
    }

    /// Returns the CORS layer, if other origins are allowed.
    pub(super) fn cors(&self) -> Option<CorsLayer> {
        let origins =
            self.origins.iter().filter_map(|origin| HeaderValue::from_str(&origin.to_string()).ok());
        let cors = CorsLayer::new()
            .allow_origin(origins.collect::<Vec<_>>())
            .allow_methods([Method::GET, Method::POST, Method::PATCH, Method::DELETE])
            .allow_headers(HEADERS.map(HeaderName::from_static))
            .expose_headers(SHOWN.map(HeaderName::from_static))
            .max_age(PREFLIGHT_AGE);
        (!self.origins.is_empty()).then_some(cors)
    }

    /// Checks that the request is for this server, and by an allowed page.
    pub(super) fn check_site(&self, request: &Request) -> Result<(), Refusal> {
        let host = self.host(request)?;
        self.check_origin(&host, request.headers())
    }

    /// Returns who the request is by, and which header has the token that says so.
    pub(super) fn caller(&self, request: &Request) -> Result<(Caller, Option<HeaderName>), Stranger> {
        if self.is_in_url(request) {
            return Err(Stranger::InUrl);
        }
        let headers = request.headers();
        let found = token::shown(headers).find_map(|shown| Some((self.whose(&shown.hash())?, shown.header)));
        if let Some((caller, header)) = found {
            let is_proxy = caller.may(Scope::Proxy);
            let caller = if is_proxy { self.named(headers, &caller)? } else { caller };
            return Ok((caller, Some(header)));
        }
        if !self.asks() {
            return Ok((Caller::administrator(), None));
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let is_page = reads && !headers.contains_key(UPGRADE) && (self.is_open)(request.uri().path());
        if is_page { Ok((Caller::nobody(), None)) } else { Err(self.stranger(headers)) }
    }

    /// Why a request is by nobody that is known.
    fn stranger(&self, headers: &HeaderMap) -> Stranger {
        let shown: Vec<_> = token::shown(headers).map(|shown| self.callers.known(&shown.hash())).collect();
        match shown.as_slice() {
            [] => Stranger::NoToken,
            // It would have been found if it were valid.
            shown if shown.iter().any(Option::is_some) => Stranger::Expired,
            _ => Stranger::Unknown,
        }
    }

    /// Whether the URL contains a token, whoever shows which one in a header: it would end up in logs, also in a provider's.
    fn is_in_url(&self, request: &Request) -> bool {
        let url = request.uri().path_and_query().map_or("", |url| url.as_str());
        let parts = url.as_bytes().split(|byte| matches!(byte, b'/' | b'?' | b'&' | b'=' | b':'));
        self.asks() && parts.filter(|part| part.len() >= LONG).any(|part| self.is_ours(&TokenHash::of(part)))
    }

    /// Returns the name of whom the request is by, also of an administrator.
    pub(super) fn name(&self, request: &Request, caller: &Caller) -> Option<CallerName> {
        if let Some(name) = caller.name() {
            return Some(name.clone());
        }
        let headers = request.headers();
        let shown = token::shown(headers).map(|shown| shown.hash()).find(|token| self.is_ours(token))?;
        let known = match &self.token {
            Some(administrators) if administrators.is(&shown) => return None,
            _ => self.callers.known(&shown)?,
        };
        if !known.scopes.contains(&Scope::Proxy) {
            return Some(known.name);
        }
        named::caller(str::from_utf8(headers.get(&self.caller_header)?.as_bytes()).ok()?)
    }

    /// Whether nobody is served without a token.
    pub(super) fn asks(&self) -> bool {
        self.token.is_some() || self.callers.asks()
    }

    /// Whether this is somebody's token.
    fn is_ours(&self, token: &TokenHash) -> bool {
        self.token.as_ref().is_some_and(|administrators| administrators.is(token)) || self.callers.has(token)
    }

    /// Returns whose token this is.
    fn whose(&self, token: &TokenHash) -> Option<Caller> {
        match &self.token {
            Some(administrators) if administrators.is(token) => Some(Caller::administrator()),
            _ => self.callers.find(token),
        }
    }

    /// Returns the caller that a proxy names. If there are several names, it is unknown which one the proxy wrote.
    fn named(&self, headers: &HeaderMap, proxy: &Caller) -> Result<Caller, Stranger> {
        let mut named = headers.get_all(&self.caller_header).iter();
        let name = named
            .next()
            .filter(|_| named.next().is_none())
            .and_then(|name| str::from_utf8(name.as_bytes()).ok());
        let name = name.and_then(named::caller).ok_or(Stranger::Unnamed)?;
        self.callers.named(&name, proxy).ok_or(Stranger::NotServed)
    }

    /// Whether the request is by the owner of the server.
    pub(super) fn is_owner(&self, request: &Request) -> bool {
        if self.asks() {
            // Noted when it was let in; else it shows a token now.
            let known = request.extensions().get::<Caller>().cloned();
            let known = known.or_else(|| Some(self.caller(request).ok()?.0));
            return known.is_some_and(|caller| caller.is_administrator());
        }
        let Ok(host) = self.host(request) else { return false };
        let is_here = |Peer(address): &Peer| address.ip().to_canonical().is_loopback();
        // A proxy on this machine forwards requests of others.
        let is_forwarded = FORWARDED.iter().any(|name| request.headers().contains_key(*name));
        let mut origins = request.headers().get_all(ORIGIN).iter();
        let is_own = |origin: &HeaderValue| {
            origin.to_str().ok().and_then(Origin::parse).is_some_and(|origin| origin.is_at(&host))
        };
        request.extensions().get::<Peer>().is_some_and(is_here)
            && !is_forwarded
            && host.is_loopback()
            && origins.all(is_own)
    }

    /// Notes who a request that is let in is by, and removes all tokens of this server from it. `header`: has one.
    pub(super) fn note(&self, request: &mut Request, caller: Caller, header: Option<&HeaderName>) {
        request.extensions_mut().insert(caller);
        if self.asks() {
            token::hide(request.headers_mut(), header, |token| self.is_ours(&token));
            request.headers_mut().remove(&self.caller_header);
        }
    }

    /// Returns the requested host if it is accepted.
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
        if self.is_here(&host) {
            return Ok(host);
        }
        let why = format!(
            "this server is not known as {host}: use a loopback address with its port, or add the name to the allowed hosts \
             (`allowed_hosts` under [server])"
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, why))
    }

    fn is_here(&self, host: &Host) -> bool {
        // Unlike a name, a numeric address cannot be rebound to this machine.
        let by_itself = host.is_loopback() || (host.is_address() && !self.bound.ip().is_loopback());
        (by_itself && host.port_or(80) == self.bound.port())
            || self.hosts.iter().any(|ours| ours.covers(host))
    }

    /// Checks that the request is by this server's own page, an allowed one, or not by a page.
    fn check_origin(&self, host: &Host, headers: &HeaderMap) -> Result<(), Refusal> {
        let may = |origin: Origin| origin.is_at(host) || self.origins.contains(&origin);
        // All of them, because if there are several, it is unknown which one the browser wrote.
        let mut named = headers.get_all(ORIGIN).iter();
        let Some(text) = named.find(|text| !text.to_str().ok().and_then(Origin::parse).is_some_and(may))
        else {
            return Ok(());
        };
        let shown = String::from_utf8_lossy(text.as_bytes());
        let why = format!(
            "pages of {shown} may not use this server: to change it, add that to the allowed origins (`allowed_origins` \
             under [server])"
        );
        Err(Refusal::new(StatusCode::FORBIDDEN, why))
    }
}
