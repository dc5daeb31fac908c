//! The port to endpoints that calls are passed through to.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use everturn_kernel::{ProviderInfo, StreamEvent};
use everturn_wire::OnQuota;
use futures_core::stream::BoxStream;
use http::{HeaderMap, Method, StatusCode};

/// The protocol of a model API. Only a label here: who may answer whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Dialect {
    /// OpenAI's Chat Completions.
    Chat,
    /// OpenAI's Responses.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Gemini's API.
    Gemini,
}

/// An endpoint that calls are passed through to. Makes one request per call, and never retries.
pub trait Upstream: Send + Sync + 'static {
    /// Sends a request. The stream ends with [`StreamEvent::Finished`] or [`StreamEvent::Failed`]; dropping it cancels
    /// the request.
    fn send(&self, request: Outgoing) -> BoxStream<'static, Passed>;

    /// Describes the API, for traces.
    fn about(&self) -> ProviderInfo {
        ProviderInfo::default()
    }

    /// Whether it forwards the caller's credential, so that its limits are the caller's. Default: no.
    fn is_of_caller(&self) -> bool {
        false
    }
}

/// A request for an [`Upstream`].
#[derive(Clone)]
pub struct Outgoing {
    /// The method.
    pub method: Method,
    /// The path below the endpoint's base URL, percent-encoded, without a slash at its start.
    pub path: String,
    /// The query.
    pub query: Option<String>,
    /// The caller's headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
    /// How the answer is read; `None` = not at all, content begins with the first byte.
    pub dialect: Option<Dialect>,
    /// Whether the caller asked for a stream.
    pub streams: bool,
    /// Whether content counts only once the answer is complete.
    pub whole: bool,
}

/// A part of an answer.
#[derive(Debug)]
pub enum Passed {
    /// Status and headers.
    Head(StatusCode, HeaderMap),
    /// The next bytes of the body.
    Piece(Bytes),
    /// The next piece ends with the provider's own end of the answer: a caller that leaves after it misses nothing, but what
    /// the call used may still be said.
    LastIsNext,
    /// The body broke off; a failure follows.
    Cut,
    /// What the turn learns, as from a [`Provider`](everturn_kernel::Provider); [`StreamEvent::Opaque`] = content has
    /// begun.
    Fact(StreamEvent),
}

/// A provider that calls are passed through to, as configured.
#[derive(Clone)]
#[non_exhaustive]
pub struct RelayProvider {
    /// Its name, which is that of its first credential.
    pub name: String,
    /// What it speaks.
    pub dialect: Dialect,
    /// Its credentials, each with its name; never empty.
    pub credentials: Vec<(String, Arc<dyn Upstream>)>,
    /// Its models, by its own names. It is asked for others as well.
    pub models: Vec<String>,
    /// How long a call may take until its content begins; `None` = as long as turns.
    pub budget: Option<Duration>,
    /// Whether answers are held until they are complete.
    pub whole: bool,
    /// What happens at a limit that lasts for hours or days, as in [`RelayCall::quota`](crate::RelayCall).
    pub quota: Option<OnQuota>,
}

impl RelayProvider {
    /// A provider with one credential and the usual rules.
    pub fn new(name: impl Into<String>, dialect: Dialect, upstream: Arc<dyn Upstream>) -> Self {
        let name = name.into();
        let credentials = vec![(name.clone(), upstream)];
        Self { name, dialect, credentials, models: Vec::new(), budget: None, whole: false, quota: None }
    }
}
