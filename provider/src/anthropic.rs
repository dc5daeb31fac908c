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
    AnswerLimits, ConfigError, EndpointConfig, HttpClient,
    answer::Answer,
    clock,
    endpoint::{Credential, Endpoint},
    exchange::{self, Body, Reader},
};
use reader::AnthropicReader;

/// The version of the API that this adapter speaks, in the header `anthropic-version` unless that is set.
const VERSION: (&str, &str) = ("anthropic-version", "2023-06-01");

/// What the origin of its echoes begins with.
const API: &str = "anthropic";

/// Configuration of an endpoint of the Messages API.
#[derive(Clone, Debug, PartialEq)]
pub struct AnthropicConfig {
    /// Where it is, up to and without `/messages`, e.g. `https://api.anthropic.com/v1`. The key is sent as `x-api-key`.
    pub endpoint: EndpointConfig,
    /// The most tokens of an answer where a request does not say; the API insists on a number. 8192 unless set.
    pub max_tokens: u32,
    /// Fields that every request has besides, or instead of, the adapter's own. `stream` cannot be replaced.
    pub extra_body: Map<String, Value>,
    /// Limits on the answer.
    pub limits: AnswerLimits,
}

/// An endpoint of the Messages API.
///
/// A call succeeds when a `stop_reason` and `message_stop` came; tool calls (unless they were asked for early: then each with
/// the end of its block) and token counts are told at that moment, text and thinking as they come. Everything else is a failure.
///
/// A reasoning effort that is a number is a budget of thinking tokens, at least 1024; 0 is none at all. Models from 4.7 on
/// refuse budgets. Any other effort is sent as the API's own `effort`, which turns thinking on where a model does so by
/// itself; elsewhere, or to be shown a summary, set `thinking` in [`AnthropicConfig::extra_body`].
///
/// What the model thought in the running turn is sent back as it was signed, to the host that signed it. Where a turn
/// with tool results did not begin with such thinking (another model began it, say), its steps are asked for without a
/// budget, wherever that is set, as the API demands.
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
    /// Creates the adapter. It does not connect yet.
    ///
    /// # Errors
    /// When the address, the key or a header is invalid.
    pub fn new(http: HttpClient, config: AnthropicConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(http, &config.endpoint, Credential::Header("x-api-key"), &[VERSION])?;
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config) })
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

/// What is answered.
pub(crate) fn answered(answer: Answer, origin: String, limits: AnswerLimits) -> Body<impl Reader> {
    Body::new(AnthropicReader::new(answer, origin), limits.event)
}
