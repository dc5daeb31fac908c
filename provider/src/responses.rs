//! OpenAI's Responses API, which vLLM, llama.cpp, Ollama, OpenRouter and others speak too.

mod echo;
mod frame;
mod output;
mod reader;
mod refused;
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
use reader::ResponsesReader;
use refused::Refused;

/// Configuration of an endpoint of the Responses API.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponsesConfig {
    /// Where it is, up to and without `/responses`, e.g. `https://api.openai.com/v1`.
    pub endpoint: EndpointConfig,
    /// Whether a model's arguments must fit the schemas of its tools to the letter, which most schemas are not written
    /// for: off unless set.
    pub strict_tools: bool,
    /// Fields that every request has besides, or instead of, the adapter's own: `include` as an empty list for a model
    /// that does not reason, for instance. `stream` cannot be replaced.
    pub extra_body: Map<String, Value>,
    /// Limits on the answer.
    pub limits: AnswerLimits,
}

/// An endpoint of the Responses API.
///
/// A call succeeds when `response.completed` or `response.incomplete` came; tool calls (unless they were asked for
/// early: then each with its item) and token counts are told at that moment, text and reasoning as they come. Everything else is a failure.
///
/// The endpoint is asked to store nothing: each request has the whole conversation. Reasoning goes back encrypted, to
/// the endpoint and model that gave it, with what it led to. Where it is refused, or the summary of it that goes with an
/// effort, the next request is without it.
#[derive(Clone, Debug)]
pub struct Responses {
    endpoint: Arc<Endpoint>,
    config: Arc<ResponsesConfig>,
    refused: Arc<Refused>,
}

impl ResponsesConfig {
    /// Creates a configuration with defaults.
    pub fn new(endpoint: EndpointConfig) -> Self {
        Self { endpoint, strict_tools: false, extra_body: Map::new(), limits: AnswerLimits::default() }
    }
}

impl Responses {
    /// Creates the adapter. It does not connect yet.
    ///
    /// # Errors
    /// When the address, the key or a header is invalid.
    pub fn new(http: HttpClient, config: ResponsesConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(http, &config.endpoint, Credential::Bearer, &[])?;
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config), refused: Arc::default() })
    }
}

impl Provider for Responses {
    fn refuses(&self, parameters: &Parameters) -> Vec<&'static str> {
        parameters.names_beyond(&request::PARAMETERS)
    }

    fn about(&self) -> ProviderInfo {
        self.endpoint.about("openai_compatible")
    }

    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        // Behind one address a gateway may have models of many makers.
        let origin = format!("{} {}", self.endpoint.origin("openai-responses"), request.model);
        let mut body = request::body(&self.config, &origin, &request);
        let (refused, sent) = (Arc::clone(&self.refused), self.refused.leave_out(&mut body));
        let post = self.endpoint.post(&["responses"], &body, request.trace.as_ref());
        let answer = Answer::new(format!("call_{:x}", clock::now()), self.config.limits.answer);
        let body = answered(answer.eager(request.eager_calls), origin, self.config.limits);
        let learn = move |mut fact| {
            if let StreamEvent::Failed(failure) = &mut fact {
                refused.learn(&sent, failure);
            }
            fact
        };
        exchange::run(Arc::clone(&self.endpoint), post, body).map(learn).boxed()
    }
}

/// What is answered.
pub(crate) fn answered(answer: Answer, origin: String, limits: AnswerLimits) -> Body<impl Reader> {
    Body::new(ResponsesReader::new(answer, origin), limits.event)
}
