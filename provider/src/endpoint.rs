//! An endpoint: builds its requests, and reports its failures without secrets.

mod vendor;

use std::{borrow::Cow, fmt, mem, sync::Arc};

use bytes::Bytes;
use everturn_diagnosis::{Evidence, Stage, Transport, diagnose};
use everturn_kernel::{Limits, ProviderInfo};
use everturn_wire::{Failure, TraceContext, Value};
use hyper::{
    HeaderMap, Method, Uri,
    header::{
        ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_TYPE, HeaderName, HeaderValue, PROXY_AUTHORIZATION,
        USER_AGENT,
    },
};
use url::{Position, Url};

use crate::{
    ConfigError, EndpointConfig, HttpClient, clock,
    http::{self, ConnectionError, Request, Response},
    limit,
    secret::{Mask, Veil},
};

/// Configurable headers that carry no credential. Errors may quote their values.
const HARMLESS_HEADERS: &[&str] = &[
    "accept",
    "anthropic-beta",
    "anthropic-version",
    "content-type",
    "http-referer",
    "openai-beta",
    "referer",
    "user-agent",
    "x-title",
];

/// Query parameters that carry no credential.
const HARMLESS_FIELDS: &[&str] = &["alt", "api-version", "version"];

/// The field of the query with which Gemini's API is asked for event streams.
const SSE: (&str, &str) = ("alt", "sse");

const TRACE_PARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACE_STATE: HeaderName = HeaderName::from_static("tracestate");

/// How an API expects its credential.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Credential {
    /// `Authorization: Bearer <key>`.
    Bearer,
    /// A header with this name.
    Header(&'static str),
}

/// The status and headers of a response, kept to explain later failures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Head {
    status: u16,
    headers: HeaderMap,
}

impl Head {
    /// Takes the headers out of a response.
    pub(crate) fn of(response: &mut Response) -> Self {
        Self { status: response.status(), headers: mem::take(response.headers_mut()) }
    }

    fn pairs(&self) -> Vec<(&str, Cow<'_, str>)> {
        let text = |value| String::from_utf8_lossy(HeaderValue::as_bytes(value));
        self.headers.iter().map(|(name, value)| (name.as_str(), text(value))).collect()
    }

    /// Returns the limits that it reports; `None` if none.
    pub(crate) fn limits(&self) -> Option<Limits> {
        Some(limit::read(&self.headers, clock::now())).filter(|limits| !limits.0.is_empty())
    }
}

fn borrowed<'a>(pairs: &'a [(&'a str, Cow<'a, str>)]) -> Vec<(&'a str, &'a str)> {
    pairs.iter().map(|(name, value)| (*name, &**value)).collect()
}

pub(crate) struct Endpoint {
    client: HttpClient,
    base: Url,
    headers: HeaderMap,
    /// The headers that are configured, among them the credential.
    owned: HeaderMap,
    veil: Veil,
}

impl Endpoint {
    /// Creates the endpoint. `fixed` are headers that the API requires; configured headers override them.
    pub(crate) fn new(
        client: HttpClient,
        config: &EndpointConfig,
        way: Credential,
        fixed: &[(&'static str, &'static str)],
    ) -> Result<Self, ConfigError> {
        let base = base(&config.base_url)?;
        let uri: Uri = base
            .as_str()
            .parse()
            .map_err(|error: hyper::http::uri::InvalidUri| ConfigError::BaseUrl(error.to_string()))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
        headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("identity"));
        headers.insert(USER_AGENT, HeaderValue::from_static(http::USER_AGENT));
        for &(name, value) in fixed {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        let mut owned = HeaderMap::new();
        if let Some(value) = client.proxy_authorization(&uri) {
            owned.insert(PROXY_AUTHORIZATION, value);
        }
        if let Some(key) = &config.api_key {
            let (name, value) = match way {
                Credential::Bearer => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
                Credential::Header(name) => (HeaderName::from_static(name), key.reveal().to_owned()),
            };
            owned.insert(name, sensitive(&value).ok_or(ConfigError::ApiKey)?);
        }
        for (name, value) in &config.headers {
            let wrong = |part| ConfigError::Header { name: name.clone(), part };
            let header = HeaderName::try_from(name).map_err(|_| wrong("name"))?;
            owned.insert(header, sensitive(value.reveal()).ok_or_else(|| wrong("value"))?);
        }
        replace(&mut headers, &owned);
        let mut veil = Veil::default();
        hide(config, &base, &mut veil);
        Ok(Self { client, base, headers, owned, veil })
    }

    /// Has calls answered with an event stream by an API that would send one JSON array.
    pub(crate) fn with_sse(mut self) -> Self {
        self.base.query_pairs_mut().append_pair(SSE.0, SSE.1);
        self
    }

    pub(crate) fn http(&self) -> &HttpClient {
        &self.client
    }

    /// The secrets.
    pub(crate) fn veil(&self) -> &Veil {
        &self.veil
    }

    /// Returns the mask for the secrets in an answer.
    pub(crate) fn mask(&self) -> Mask {
        Mask::new(self.veil.whole())
    }

    /// Returns the origin of echoes: the API and the host. Echoes are sent back only to the same origin.
    pub(crate) fn origin(&self, api: &str) -> String {
        format!("{api} {}", self.authority())
    }

    /// Describes the endpoint for traces; `other` is the vendor if the host is unknown.
    pub(crate) fn about(&self, other: &'static str) -> ProviderInfo {
        ProviderInfo::new(vendor::of(&self.base, other), Arc::from(vendor::shown(&self.base)))
    }

    /// Builds a request to a path below the base URL, as part of a trace.
    pub(crate) fn post(&self, path: &[&str], body: &Value, trace: Option<&TraceContext>) -> Request {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        let mut request = hyper::Request::post(url.as_str()).body(body.to_string().into())?;
        request.headers_mut().clone_from(&self.headers);
        if let Some(trace) = trace {
            let values = [(TRACE_PARENT, Some(trace.parent())), (TRACE_STATE, trace.state())];
            let header = |(name, value): (_, Option<&str>)| Some((name, HeaderValue::from_str(value?).ok()?));
            request.headers_mut().extend(values.into_iter().filter_map(header));
        }
        Ok(request)
    }

    /// Builds a request that a caller made: its path below the base URL, its query and headers as they came. Only the
    /// configured headers replace the caller's.
    pub(crate) fn passed_on(
        &self,
        method: Method,
        path: &str,
        query: Option<&str>,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Request {
        let base = self.base[..Position::AfterPath].trim_end_matches('/');
        // A version that the base URL ends with is not repeated.
        let version = base.rsplit('/').next().unwrap_or_default();
        let is_version = version.starts_with('v') && version[1..].starts_with(|c: char| c.is_ascii_digit());
        let path = match path.split_once('/') {
            Some((first, rest)) if is_version && first == version => rest,
            _ => path,
        };
        let mut fields = [self.base.query(), query].into_iter().flatten().filter(|query| !query.is_empty());
        let mut uri = format!("{base}/{path}");
        for (separator, query) in ['?', '&'].into_iter().zip(&mut fields) {
            uri.push(separator);
            uri.push_str(query);
        }
        replace(&mut headers, &self.owned);
        let mut request = hyper::Request::builder().method(method).uri(uri).body(body.into())?;
        *request.headers_mut() = headers;
        Ok(request)
    }

    /// Builds a request that reads something below the base URL.
    pub(crate) fn get(&self, path: &[&str], query: Option<(&str, &str)>) -> Request {
        let mut url = self.base.clone();
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        // Only calls are answered with an event stream.
        let kept: Vec<_> =
            self.base.query_pairs().filter(|(name, value)| (&**name, &**value) != SSE).collect();
        url.set_query(None);
        for (name, value) in kept.iter().map(|(name, value)| (&**name, &**value)).chain(query) {
            url.query_pairs_mut().append_pair(name, value);
        }
        let mut request = hyper::Request::get(url.as_str()).body(Bytes::new().into())?;
        request.headers_mut().clone_from(&self.headers);
        request.headers_mut().remove(CONTENT_TYPE);
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        Ok(request)
    }

    /// Returns the failure of a response that is not a stream.
    pub(crate) fn refused(&self, head: &Head, body: &[u8]) -> Failure {
        let mut failure = self.diagnose(Stage::Http, Some(head), &String::from_utf8_lossy(body), None);
        if body.trim_ascii().is_empty() {
            failure.message.push_str("(empty body)");
        }
        failure
    }

    /// Returns the failure of an error inside a stream.
    pub(crate) fn broken(&self, head: &Head, payload: &str) -> Failure {
        self.diagnose(Stage::InStream, Some(head), payload, None)
    }

    /// Returns the failure of a stream that ended cleanly but too early.
    pub(crate) fn truncated(&self, what: &str, head: &Head) -> Failure {
        self.lost(&ConnectionError { kind: Transport::Truncated, text: what.to_owned() }, Some(head))
    }

    /// Returns the failure of a connection that failed or broke. `head` is that of the response, if it had begun.
    pub(crate) fn lost(&self, fault: &ConnectionError, head: Option<&Head>) -> Failure {
        // The headers belong to a successful response, not to its broken end.
        let begun = head.map(|head| Head { status: head.status, headers: HeaderMap::new() });
        let mut failure = self.diagnose(Stage::Transport, begun.as_ref(), &fault.text, Some(fault.kind));
        failure.message = format!("{}: {}", self.authority(), failure.message);
        failure
    }

    fn diagnose(
        &self,
        stage: Stage,
        head: Option<&Head>,
        body: &str,
        transport: Option<Transport>,
    ) -> Failure {
        let pairs = head.map(Head::pairs).unwrap_or_default();
        let headers = borrowed(&pairs);
        let mut failure = diagnose(&Evidence {
            stage,
            status: head.map(|head| head.status),
            headers: &headers,
            body,
            transport,
            now: clock::now(),
        });
        // Redact after the diagnosis, because what looks like part of a secret may be a decisive word.
        self.veil.hide_in(&mut failure.message);
        if let Some(code) = &mut failure.provider_code {
            self.veil.hide_in(code);
        }
        failure
    }

    /// Returns the host, with the port unless it is the default.
    fn authority(&self) -> String {
        let host = self.base.host_str().unwrap_or_default();
        self.base.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
    }
}

fn base(text: &str) -> Result<Url, ConfigError> {
    let url = Url::parse(text.trim()).map_err(|error| ConfigError::BaseUrl(error.to_string()))?;
    let wrong = |what: &str| Err(ConfigError::BaseUrl(what.to_owned()));
    if !matches!(url.scheme(), "http" | "https") {
        return wrong("it is neither http nor https");
    }
    if !url.username().is_empty() || url.password().is_some() {
        return wrong("it contains a user name or password, which belong in the API key or a header");
    }
    Ok(url)
}

fn replace(headers: &mut HeaderMap, by: &HeaderMap) {
    for (name, value) in by {
        headers.insert(name, value.clone());
    }
}

fn sensitive(value: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some(value)
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("authority", &self.authority()).finish_non_exhaustive()
    }
}

/// Adds everything secret in a configuration. Only a valid one has secrets: others are never used.
pub(crate) fn hide_secrets(config: &EndpointConfig, veil: &mut Veil) {
    if let Ok(base) = base(&config.base_url) {
        hide(config, &base, veil);
    }
}

fn hide(config: &EndpointConfig, base: &Url, veil: &mut Veil) {
    if let Some(key) = &config.api_key {
        veil.add(key.reveal());
    }
    for (name, value) in &config.headers {
        if !HARMLESS_HEADERS.iter().any(|harmless| name.eq_ignore_ascii_case(harmless)) {
            veil.add(value.reveal());
        }
    }
    for (name, value) in base.query_pairs() {
        if !HARMLESS_FIELDS.contains(&&*name) {
            veil.add(&value);
        }
    }
    for segment in base.path_segments().into_iter().flatten() {
        // Percent-encoded secrets are found in this form.
        let fields = format!("segment={}", segment.replace('+', "%2B"));
        let mut url = base.clone();
        url.set_query(Some(&fields));
        let meant = url.query_pairs().next().map(|(_, value)| value.into_owned()).unwrap_or_default();
        match () {
            () if !is_name(&meant) => veil.add(&meant),
            // Possibly a passphrase, unlike `deployments` or `gpt-4o-mini`.
            () if meant.split(['-', '_']).filter(|part| is_word(part)).count() >= 3 => veil.add_name(&meant),
            () => {}
        }
    }
}

fn is_word(part: &str) -> bool {
    part.len() < 20 && part.bytes().all(|byte| byte.is_ascii_lowercase())
}

/// Whether a path segment consists of words, short numbers and versions, like `deployments` and `gpt-4o-mini`.
fn is_name(segment: &str) -> bool {
    segment.split(['-', '_', '.', ':', ' ']).all(|part| {
        is_word(part)
            || part.len() <= 4
            || (part.len() <= 8 && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests;
