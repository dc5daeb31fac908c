//! OpenAI's Chat Completions API, supported by most servers.

mod detail;
mod frame;
mod reader;
mod request;

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
pub(crate) use frame::usage;
use reader::ChatReader;

/// The API's name in the origin of echoes.
const API: &str = "openai-chat";

/// Configuration of a Chat Completions endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatConfig {
    /// The endpoint, without `/chat/completions`. The key is sent as a bearer token.
    pub endpoint: EndpointConfig,
    /// Name of the field for the output token limit.
    pub output_limit: OutputLimit,
    /// Whether to request token counts. Default: yes; some servers reject the field.
    pub include_usage: bool,
    /// Whether and how reasoning is sent back to the model. Default: not at all; some servers reject the fields.
    pub return_reasoning: ReturnReasoning,
    /// Format of past messages. Default: OpenAI's.
    pub history: HistoryForm,
    /// Additional request fields, merged at any depth. They replace the adapter's own, except `stream`.
    pub extra_body: Map<String, Value>,
    /// Limits on the answer.
    pub limits: AnswerLimits,
}

/// Name of the field for the output token limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputLimit {
    /// `max_completion_tokens`: OpenAI.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`: most others.
    MaxTokens,
}

/// How reasoning of earlier answers is sent back to the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReturnReasoning {
    /// Not at all: OpenAI.
    #[default]
    Never,
    /// As text in `reasoning_content`: DeepSeek and Moonshot reject tool calls of reasoning models without it.
    Content,
    /// As received in `reasoning_details`, including signatures: OpenRouter.
    Details,
}

/// Format of past messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryForm {
    /// OpenAI's, accepted by most others.
    #[default]
    Usual,
    /// Mistral's, and that of its models' chat templates: call ids are nine alphanumeric characters, and no user message
    /// directly follows tool results, as it would after a stop or a steering message.
    Mistral,
}

/// An endpoint of the Chat Completions API.
///
/// A call succeeds if a `finish_reason` arrived **and** the stream then ended with `[DONE]` or cleanly. Text and reasoning are
/// yielded as they arrive, tool calls and token counts at the end (eager calls: as soon as the next one begins). Everything
/// else is a failure: an error anywhere in the stream, an end without `finish_reason`, an empty answer.
#[derive(Clone, Debug)]
pub struct ChatCompletions {
    endpoint: Arc<Endpoint>,
    config: Arc<ChatConfig>,
}

impl ChatConfig {
    /// Creates a configuration with defaults that suit most servers.
    pub fn new(endpoint: EndpointConfig) -> Self {
        Self {
            endpoint,
            output_limit: OutputLimit::default(),
            include_usage: true,
            return_reasoning: ReturnReasoning::default(),
            history: HistoryForm::default(),
            extra_body: Map::new(),
            limits: AnswerLimits::default(),
        }
    }
}

impl OutputLimit {
    fn field(self) -> &'static str {
        match self {
            Self::MaxCompletionTokens => "max_completion_tokens",
            Self::MaxTokens => "max_tokens",
        }
    }
}

impl ChatCompletions {
    /// Creates the adapter without connecting.
    ///
    /// # Errors
    /// Returns an error if the URL, the key or a header is invalid.
    pub fn new(http: HttpClient, config: ChatConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(http, &config.endpoint, Credential::Bearer, &[])?;
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config) })
    }
}

impl ChatCompletions {
    /// Returns what reads the list of models.
    pub fn lister(&self) -> Lister {
        Lister::new(&self.endpoint, None)
    }
}

impl Provider for ChatCompletions {
    fn refuses(&self, _: &Parameters) -> Vec<&'static str> {
        Vec::new()
    }

    fn about(&self) -> ProviderInfo {
        self.endpoint.about("openai_compatible")
    }

    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let origin = self.endpoint.origin(API);
        let body = request::body(&self.config, &origin, &request);
        let post = self.endpoint.post(&["chat", "completions"], &body, request.trace.as_ref());
        let answer = Answer::new(format!("call_{:x}", clock::now()), self.config.limits.answer);
        let answer = answer.eager(request.eager_calls);
        let details = (self.config.return_reasoning == ReturnReasoning::Details).then_some(origin);
        exchange::run(Arc::clone(&self.endpoint), post, answered(answer, details, self.config.limits))
    }
}

/// Returns the reader of an answer. `details` is the origin of echoes, if they are wanted.
pub(crate) fn answered(answer: Answer, details: Option<String>, limits: AnswerLimits) -> Body<impl Reader> {
    Body::new(ChatReader::new(answer, details), limits.event)
}
