//! Google's Gemini API.

mod echo_data;
mod frame;
mod non_thinking;
mod reader;
mod request;

use std::sync::Arc;

use everturn_kernel::{Provider, ProviderInfo, Request, StreamEvent};
use everturn_wire::{Parameters, Value};
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use serde_json::Map;

use crate::{
    AnswerLimits, ConfigError, EndpointConfig, HttpClient,
    answer::Answer,
    clock,
    endpoint::{Credential, Endpoint},
    exchange::{self, Body, Reader},
};
use non_thinking::NonThinkingModels;
use reader::GeminiReader;

/// The API, as an echo's origin names it.
const API: &str = "gemini";

/// Configuration of an endpoint of the Gemini API.
#[derive(Clone, Debug, PartialEq)]
pub struct GeminiConfig {
    /// Where it is, up to and without `/models`, e.g. `https://generativelanguage.googleapis.com/v1beta`. The key is
    /// sent as `x-goog-api-key`.
    pub endpoint: EndpointConfig,
    /// Fields that every request has besides, or instead of, the adapter's own, at any depth: a temperature is
    /// `{"generationConfig": {"temperature": 0.2}}`.
    pub extra_body: Map<String, Value>,
    /// Limits on the answer.
    pub limits: AnswerLimits,
}

/// An endpoint of the Gemini API.
///
/// A call succeeds when a `finishReason` came **and** the stream then ended in good order: the API has no other end.
/// Tool calls (unless they were asked for early: then as they come) and token counts are told at that moment, text and thoughts as they come. Everything else is a failure.
///
/// A model without a slash in its name is one of `models/`. A reasoning effort that is a number is a budget of
/// thinking tokens (0: no thinking, -1: as the model likes); any other is sent as the API's own `thinkingLevel`. Without
/// one, a model that refuses to be asked for its thoughts is not asked again.
#[derive(Clone, Debug)]
pub struct Gemini {
    endpoint: Arc<Endpoint>,
    config: Arc<GeminiConfig>,
    non_thinking: Arc<NonThinkingModels>,
}

impl GeminiConfig {
    /// Creates a configuration with defaults.
    pub fn new(endpoint: EndpointConfig) -> Self {
        Self { endpoint, extra_body: Map::new(), limits: AnswerLimits::default() }
    }
}

impl Gemini {
    /// Creates the adapter. It does not connect yet.
    ///
    /// # Errors
    /// When the address, the key or a header is invalid.
    pub fn new(http: HttpClient, config: GeminiConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(http, &config.endpoint, Credential::Header("x-goog-api-key"), &[])?
            // Otherwise the answer is one JSON array.
            .with_query("alt", "sse");
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config), non_thinking: Arc::default() })
    }
}

impl Provider for Gemini {
    fn refuses(&self, parameters: &Parameters) -> Vec<&'static str> {
        parameters.names_beyond(&request::PARAMETERS)
    }

    fn about(&self) -> ProviderInfo {
        self.endpoint.about("gcp.gemini")
    }

    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        // A signature is the model's: another one, of the same API, refuses it.
        let origin = format!("{} {}", self.endpoint.origin(API), request.model);
        let mut body = request::body(&self.config, &origin, &request);
        let asks_for_thoughts = self.non_thinking.leave_out(&request.model, &mut body);
        let path = request::path(&request.model);
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        let post = self.endpoint.post(&path, &body, request.trace.as_ref());
        let answer = Answer::new(format!("gemini_{:x}", clock::now()), self.config.limits.answer);
        let body = answered(answer.eager(request.eager_calls), origin, self.config.limits);
        let non_thinking = Arc::clone(&self.non_thinking);
        let learn = move |mut fact| {
            if let StreamEvent::Failed(failure) = &mut fact
                && asks_for_thoughts
            {
                non_thinking.learn(&request.model, failure);
            }
            fact
        };
        exchange::run(Arc::clone(&self.endpoint), post, body).map(learn).boxed()
    }
}

/// What is answered.
pub(crate) fn answered(answer: Answer, origin: String, limits: AnswerLimits) -> Body<impl Reader> {
    Body::new(GeminiReader::new(answer, origin), limits.event)
}
