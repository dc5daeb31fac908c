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
    AnswerLimits, ConfigError, EndpointConfig, HttpClient, Lister,
    answer::Answer,
    clock,
    endpoint::{Credential, Endpoint},
    exchange::{self, Body, Reader},
};
pub(crate) use frame::Counts;
use non_thinking::NonThinkingModels;
use reader::GeminiReader;

/// The API's name in the origin of echoes.
const API: &str = "gemini";

/// Configuration of a Gemini API endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct GeminiConfig {
    /// The endpoint, without `/models`, e.g. `https://generativelanguage.googleapis.com/v1beta`. The key is sent as
    /// `x-goog-api-key`.
    pub endpoint: EndpointConfig,
    /// Additional request fields, merged at any depth. They replace the adapter's own. A temperature is
    /// `{"generationConfig": {"temperature": 0.2}}`.
    pub extra_body: Map<String, Value>,
    /// Limits on the answer.
    pub limits: AnswerLimits,
}

/// An endpoint of the Gemini API.
///
/// A call succeeds if a `finishReason` arrived **and** the stream then ended cleanly, because the API has no terminal
/// event. Text and thoughts are yielded as they arrive, tool calls and token counts at the end (eager calls: as they
/// arrive). Everything else is a failure.
///
/// A model name without a slash refers to `models/`. A numeric reasoning effort is a budget of thinking tokens (0: no
/// thinking, -1: the model decides); any other is sent as the API's `thinkingLevel`. Without an effort, thoughts are no
/// longer requested from a model that rejected that request.
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
    /// Creates the adapter without connecting.
    ///
    /// # Errors
    /// Returns an error if the URL, the key or a header is invalid.
    pub fn new(http: HttpClient, config: GeminiConfig) -> Result<Self, ConfigError> {
        let endpoint =
            Endpoint::new(http, &config.endpoint, Credential::Header("x-goog-api-key"), &[])?.with_sse();
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config), non_thinking: Arc::default() })
    }
}

impl Gemini {
    /// Returns what reads the list of models.
    pub fn lister(&self) -> Lister {
        Lister::new(&self.endpoint, Some(("pageSize", "1000")))
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
        // Signatures are specific to the model. Another model of the same API rejects them.
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

/// Returns the reader of an answer.
pub(crate) fn answered(answer: Answer, origin: String, limits: AnswerLimits) -> Body<impl Reader> {
    Body::new(GeminiReader::new(answer, origin), limits.event)
}
