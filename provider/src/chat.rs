//! OpenAI's Chat Completions API, which most servers speak.

mod detail;
mod frame;
mod reader;
mod request;

use std::sync::Arc;

use everturn_kernel::{Provider, Request, StreamEvent};
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
use reader::ChatReader;

/// The API, as the origin of echoes names it.
const API: &str = "openai-chat";

/// How to speak to one endpoint of the Chat Completions API.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatConfig {
    /// Where it is, up to and without `/chat/completions`. The key is sent as a bearer token.
    pub endpoint: EndpointConfig,
    /// What the field is called that bounds an answer's tokens.
    pub output_limit: OutputLimit,
    /// Whether token counts are asked for. Yes unless set; some servers refuse the field.
    pub include_usage: bool,
    /// Whether the model is given its reasoning back, and how. Not, unless set: some servers refuse the fields.
    pub return_reasoning: ReturnReasoning,
    /// How past messages are written. As OpenAI takes them, unless set.
    pub history: HistoryForm,
    /// Fields that every request has besides, or instead of, the adapter's own. `stream` cannot be replaced.
    pub extra_body: Map<String, Value>,
    /// How much an answer may have.
    pub limits: AnswerLimits,
}

/// The name of the field that bounds an answer's tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OutputLimit {
    /// `max_completion_tokens`, as OpenAI calls it.
    #[default]
    MaxCompletionTokens,
    /// `max_tokens`, as most others do.
    MaxTokens,
}

/// How a model is given back the reasoning of its earlier answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReturnReasoning {
    /// Not at all, as OpenAI has it.
    #[default]
    Never,
    /// As text in `reasoning_content`: DeepSeek and Moonshot refuse calls of tools without, once a model thinks.
    Content,
    /// As it came in `reasoning_details`, signatures and all: OpenRouter.
    Details,
}

/// How past messages are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryForm {
    /// As OpenAI takes them, and most others.
    #[default]
    Usual,
    /// As Mistral and the chat templates of its models insist: ids of calls have nine letters and digits, and a person
    /// does not speak right after tool results, as they do after a step was stopped or to steer it.
    Mistral,
}

/// An endpoint of the Chat Completions API.
///
/// A call succeeds when a `finish_reason` came **and** the stream then ended with `[DONE]` or in good order; tool
/// calls (unless they were asked for early: then each as the next one begins) and token counts are told at that moment, text
/// and reasoning as they come. Everything else is a failure: an
/// error at any place of the stream, an end without a `finish_reason`, an empty answer.
#[derive(Clone, Debug)]
pub struct ChatCompletions {
    endpoint: Arc<Endpoint>,
    config: Arc<ChatConfig>,
}

impl ChatConfig {
    /// An endpoint with everything else as most servers want it.
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
    /// Makes the adapter; connects to nothing yet.
    ///
    /// # Errors
    /// When the address, the key or a header cannot be used.
    pub fn new(http: HttpClient, config: ChatConfig) -> Result<Self, ConfigError> {
        let endpoint = Endpoint::new(http, &config.endpoint, Credential::Bearer, &[])?;
        Ok(Self { endpoint: Arc::new(endpoint), config: Arc::new(config) })
    }
}

impl Provider for ChatCompletions {
    fn refuses(&self, _: &Parameters) -> Vec<&'static str> {
        Vec::new()
    }

    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let origin = self.endpoint.origin(API);
        let body = request::body(&self.config, &origin, &request);
        let post = self.endpoint.post(&["chat", "completions"], &body);
        let answer = Answer::new(format!("call_{:x}", clock::now()), self.config.limits.answer);
        let answer = answer.eager(request.eager_calls);
        let details = (self.config.return_reasoning == ReturnReasoning::Details).then_some(origin);
        exchange::run(Arc::clone(&self.endpoint), post, answered(answer, details, self.config.limits))
    }
}

/// What is answered; `details` is the origin of echoes, where they are
/// wanted.
pub(crate) fn answered(answer: Answer, details: Option<String>, limits: AnswerLimits) -> Body<impl Reader> {
    Body::new(ChatReader::new(answer, details), limits.event)
}
