//! Calls passed through: a request is sent as it came, and its answer is yielded as it comes.
//!
//! Nothing is parsed but what shows a failure before content, and where content begins. Like the adapters, this makes
//! one request per call and never retries.

mod content;
mod exchange;
mod header;
mod refusal;
mod unpack;
mod usage;

use std::{fmt, sync::Arc};

use bytes::Bytes;
use everturn_kernel::{ProviderInfo, StreamEvent};
use futures_core::stream::BoxStream;
use hyper::{
    HeaderMap, Method, StatusCode,
    header::{CONTENT_LENGTH, HeaderValue},
};

use crate::{
    ConfigError, EndpointConfig, HttpClient,
    endpoint::{Credential, Endpoint},
};
use exchange::Exchange;

/// Where the content of an answer begins, and how its stream fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerForm {
    /// Chat Completions, and the older Completions.
    Chat,
    /// The Responses API.
    Responses,
    /// The Messages API.
    Messages,
    /// Gemini's API.
    Gemini,
    /// Unknown: content begins with the first byte.
    Opaque,
}

/// The header that carries an API's credential.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyHeader {
    /// `Authorization: Bearer <key>`.
    Bearer,
    /// `x-api-key`.
    XApiKey,
    /// `x-goog-api-key`.
    XGoogApiKey,
}

/// A request to pass on.
#[derive(Clone)]
pub struct RelayRequest {
    /// The method.
    pub method: Method,
    /// The path below the base URL, as it came: percent-encoded, without a slash at its start.
    pub path: String,
    /// The query, as it came.
    pub query: Option<String>,
    /// All headers of the caller. Those of the connection, and Everturn's own, are left out here.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// How to read the answer.
    pub form: AnswerForm,
    /// Whether the caller asked for a stream. Other answers may take as long to begin as to complete.
    pub streams: bool,
    /// Whether content counts only once the answer is complete, so that a failure in its middle is one before content.
    pub whole: bool,
}

/// An event of a call that is passed through.
#[derive(Debug)]
pub enum RelayEvent {
    /// The status and headers of the response, without those of the connection.
    Head(StatusCode, HeaderMap),
    /// The next bytes of its body.
    Piece(Bytes),
    /// The next piece ends with the provider's own end of the answer, such as `[DONE]`.
    LastIsNext,
    /// The body broke off. A failure follows.
    Cut,
    /// What the turn learns: [`StreamEvent::Opaque`] when content has begun (the pieces so far belong to it),
    /// [`StreamEvent::Finished`] or [`StreamEvent::Failed`] at the end, and silences and quotas. After a failure before
    /// content, head and pieces are the provider's own answer about it, if it gave one.
    Fact(StreamEvent),
}

/// An endpoint that calls are passed through to.
pub struct Relay {
    endpoint: Arc<Endpoint>,
    /// Whether the caller's credential is forwarded. Otherwise it is removed, and the endpoint's own is sent.
    forwards_credential: bool,
}

impl Relay {
    /// Creates the relay without connecting. Without `forwards_credential` the key of the configuration is sent in place
    /// of whatever credential the caller gave; with it, the caller's own.
    ///
    /// # Errors
    /// Returns an error if the URL, the key or a header is invalid.
    pub fn new(
        http: HttpClient,
        config: &EndpointConfig,
        key: KeyHeader,
        forwards_credential: bool,
    ) -> Result<Self, ConfigError> {
        let way = match key {
            KeyHeader::Bearer => Credential::Bearer,
            KeyHeader::XApiKey => Credential::Header("x-api-key"),
            KeyHeader::XGoogApiKey => Credential::Header("x-goog-api-key"),
        };
        let endpoint = Arc::new(Endpoint::new(http, config, way, &[])?);
        Ok(Self { endpoint, forwards_credential })
    }

    /// Describes the endpoint, for traces.
    pub fn about(&self) -> ProviderInfo {
        self.endpoint.about("unknown")
    }

    /// Sends the request when first polled. The stream ends with [`StreamEvent::Finished`] or [`StreamEvent::Failed`].
    /// Dropping it ends the exchange.
    pub fn send(&self, request: RelayRequest) -> BoxStream<'static, RelayEvent> {
        let credentials = header::credentials(&request.headers, request.query.as_deref());
        let RelayRequest { method, path, query, mut headers, body, form, streams, whole } = request;
        header::strip_request(&mut headers);
        header::decline_compression(&mut headers, streams);
        // The client library says nothing of an empty body, and some servers insist.
        if body.is_empty() && matches!(method, Method::POST | Method::PUT | Method::PATCH) {
            headers.insert(CONTENT_LENGTH, HeaderValue::from_static("0"));
        }
        let mut query = query;
        if !self.forwards_credential {
            header::strip_credentials(&mut headers);
            query = query.and_then(|query| header::without_key(&query));
        }
        let request = self.endpoint.passed_on(method, &path, query.as_deref(), headers, body);
        let watch = self.endpoint.http().timeouts();
        // Without a stream, the head comes with the complete answer.
        let watch = crate::Timeouts {
            first_byte: if streams { watch.first_byte } else { watch.progress().max(watch.first_byte) },
            ..watch
        };
        Box::pin(Exchange::new(self.endpoint.clone(), request, watch, form, whole, credentials))
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Relay").field("endpoint", &self.endpoint).finish_non_exhaustive()
    }
}
