//! OpenAI's Responses API, also supported by vLLM, llama.cpp, Ollama, OpenRouter and others.

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
    AnswerLimits, ConfigError, EndpointConfig, HttpClient, Lister,
    answer::Answer,
    clock,
    endpoint::{Credential, Endpoint},
    exchange::{self, Body, Reader},
};
pub(crate) use frame::usage;
use reader::ResponsesReader;
use refused::Refused;

/// Configuration of a Responses API endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponsesConfig {
    /// The endpoint, without `/responses`, e.g. `https://api.openai.com/v1`.
    pub endpoint: EndpointConfig,
    /// Whether arguments must match the tools' schemas exactly. Default: no, because most schemas are not written for
    /// that.
    pub strict_tools: bool,
    /// Additional request fields, merged at any depth. They replace the adapter's own, except `stream`. For
    /// example, an empty `include` for a model that does not reason.
    pub extra_body: Map<String, Value>,
    /// Limits on the answer.
    pub limits: AnswerLimits,
}

/// An endpoint of the Responses API.
///
/// A call succeeds if `response.completed` or `response.incomplete` arrived. Text and reasoning are yielded as they
/// arrive, tool calls and token counts at the end (eager calls: with their item). Everything else is a failure.
///
/// The endpoint is asked not to store anything, and each request contains the whole conversation. Encrypted reasoning
/// is sent back to the endpoint and model that issued it, with the output that it led to. If an endpoint rejects it, or
/// rejects the request for a reasoning summary, the next request omits it.
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
    /// Creates the adapter without connecting.
    ///
    /// # Errors
    /// Returns an error if the URL, the key or a header is invalid.
    pub fn new(http: HttpClient, config: ResponsesConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(http, &config.endpoint, Credential::Bearer, &[])?;
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config), refused: Arc::default() })
    }
}

impl Responses {
    /// Returns what reads the list of models.
    pub fn lister(&self) -> Lister {
        Lister::new(&self.endpoint, None)
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
        // A gateway may serve models of several vendors at one URL.
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

/// Returns the reader of an answer.
pub(crate) fn answered(answer: Answer, origin: String, limits: AnswerLimits) -> Body<impl Reader> {
    Body::new(ResponsesReader::new(answer, origin), limits.event)
}
