//! Anthropic's Messages API.

mod frame;
mod reader;
mod request;
mod thinking;

use std::sync::Arc;

use everturn_kernel::{Provider, ProviderInfo, Request, StreamEvent};
use everturn_wire::{Parameters, Value};
use futures_core::stream::BoxStream;
use serde_json::Map;

use crate::{
    AnswerLimits, ConfigError, EndpointConfig, HttpClient, Lister,
    answer::Answer,
    clock,
    endpoint::{Credential, Endpoint},
    exchange::{self, Body, Reader},
};
pub(crate) use frame::Counts;
use reader::AnthropicReader;

/// The API version of this adapter, sent in the header `anthropic-version` unless that is configured.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// The prefix of the origin of its echoes.
const API: &str = "anthropic";

/// Configuration of a Messages API endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct AnthropicConfig {
    /// The endpoint, without `/messages`, e.g. `https://api.anthropic.com/v1`. The key is sent as `x-api-key`.
    pub endpoint: EndpointConfig,
    /// Default output token limit, because the API requires one. Default: 8192.
    pub max_tokens: u32,
    /// Additional request fields, merged at any depth. They replace the adapter's own, except `stream`.
    pub extra_body: Map<String, Value>,
    /// Limits on the answer.
    pub limits: AnswerLimits,
}

/// An endpoint of the Messages API.
///
/// A call succeeds if a `stop_reason` and `message_stop` arrived. Text and thinking are yielded as they arrive, tool
/// calls and token counts at the end (eager calls: at the end of their block). Everything else is a failure.
///
/// A numeric reasoning effort is a budget of thinking tokens, at least 1024; 0 disables thinking. Models from 4.7 on
/// reject budgets. Any other effort is sent as the API's `effort`, which enables thinking for models that think by
/// default. For other models, or to receive a summary, set `thinking` in [`AnthropicConfig::extra_body`].
///
/// Signed thinking of the running turn is sent back unchanged to the host that signed it. If a turn with tool results
/// does not begin with such thinking (for example because another model began it), its steps are requested without a
/// budget, as the API demands.
#[derive(Clone, Debug)]
pub struct Anthropic {
    endpoint: Arc<Endpoint>,
    config: Arc<AnthropicConfig>,
}

impl AnthropicConfig {
    /// Creates a configuration with defaults.
    pub fn new(endpoint: EndpointConfig) -> Self {
        Self { endpoint, max_tokens: 8192, extra_body: Map::new(), limits: AnswerLimits::default() }
    }
}

impl Anthropic {
    /// Creates the adapter without connecting.
    ///
    /// # Errors
    /// Returns an error if the URL, the key or a header is invalid.
    pub fn new(http: HttpClient, config: AnthropicConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(http, &config.endpoint, Credential::Header("x-api-key"), &[VERSION])?;
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config) })
    }
}

impl Anthropic {
    /// Returns what reads the list of models.
    pub fn lister(&self) -> Lister {
        Lister::new(&self.endpoint, Some(("limit", "1000")))
    }
}

impl Provider for Anthropic {
    fn refuses(&self, parameters: &Parameters) -> Vec<&'static str> {
        request::refuses(parameters)
    }

    fn about(&self) -> ProviderInfo {
        self.endpoint.about("anthropic")
    }

    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let origin = self.endpoint.origin(API);
        let body = request::body(&self.config, &origin, &request);
        let post = self.endpoint.post(&["messages"], &body, request.trace.as_ref());
        let answer = Answer::new(format!("toolu_{:x}", clock::now()), self.config.limits.answer);
        let body = answered(answer.eager(request.eager_calls), origin, self.config.limits);
        exchange::run(Arc::clone(&self.endpoint), post, body)
    }
}

/// Returns the reader of an answer.
pub(crate) fn answered(answer: Answer, origin: String, limits: AnswerLimits) -> Body<impl Reader> {
    Body::new(AnthropicReader::new(answer, origin), limits.event)
}
