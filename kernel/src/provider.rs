//! The provider contract: one request in, a stream of events out.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

use everturn_wire::{Because, Echo, Failure, Message, Parameters, Reported, TraceContext, Usage, Value};
use futures_core::stream::BoxStream;

use crate::{CheckedCall, Limits, Op, Summary, ToolCall};

/// A model API.
///
/// The stream yields any number of events and ends with exactly one [`StreamEvent::Finished`] or
/// [`StreamEvent::Failed`]. A stream that ends without either counts as truncated. An adapter makes **one** request per
/// call and never retries: that is up to the turn. Dropping the stream cancels the request.
pub trait Provider: Send + Sync + 'static {
    /// Starts one provider call.
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent>;

    /// Returns the names of the parameters that are set but that this API does not have, or not in this form. A turn
    /// with such parameters is refused before it begins. Default: all but `maxOutputTokens`.
    fn refuses(&self, parameters: &Parameters) -> Vec<&'static str> {
        parameters.names()
    }

    /// Describes the API for traces and logs. Default: empty.
    fn about(&self) -> ProviderInfo {
        ProviderInfo::default()
    }
}

/// A description of a model API for traces and logs. Contains no secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// The vendor or API, as in OpenTelemetry's `gen_ai.provider.name`, e.g. `openai`.
    pub name: Option<&'static str>,
    /// The base URL without user information, query or fragment.
    pub url: Option<Arc<str>>,
}

impl ProviderInfo {
    /// Creates the description of an API with this name and base URL.
    pub fn new(name: &'static str, url: impl Into<Arc<str>>) -> Self {
        Self { name: Some(name), url: Some(url.into()) }
    }
}

/// One provider call.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// The id of the call within the turn.
    pub op: Op,
    /// The model, by the provider's name.
    pub model: String,
    /// The history, oldest first. Every tool call has its result. Adapters skip error chunks, which are for users.
    pub messages: Vec<Message>,
    /// The tools that the model may call.
    pub tools: Arc<[ToolSpec]>,
    /// Parameters passed on to the API; it has them all ([`Provider::refuses`]). Their output limit is in
    /// `max_output_tokens`.
    pub parameters: Arc<Parameters>,
    /// Maximum number of tokens in the answer.
    pub max_output_tokens: Option<u32>,
    /// Reasoning effort, in the provider's terms.
    pub reasoning_effort: Option<String>,
    /// Whether to yield a tool call as soon as its arguments are complete, if the API marks that. Otherwise calls are
    /// yielded at the end of the stream, and an interrupted answer yields none.
    pub eager_calls: bool,
    /// The trace that the call belongs to, sent to the API as `traceparent` and `tracestate`.
    pub trace: Option<TraceContext>,
}

impl Request {
    /// Creates a request of these messages, without tools, parameters or limits.
    pub fn new(op: Op, model: impl Into<String>, messages: Vec<Message>) -> Self {
        Self {
            op,
            model: model.into(),
            messages,
            tools: Arc::default(),
            parameters: Arc::default(),
            max_output_tokens: None,
            reasoning_effort: None,
            eager_calls: false,
            trace: None,
        }
    }
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name, unique among the tools of a request.
    pub name: String,
    /// Its description for the model.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// An event of a provider call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// Visible text.
    Text(String),
    /// Reasoning.
    Reasoning(String),
    /// Opaque data that must be sent back with the preceding reasoning, which it closes. If no reasoning is open, it
    /// belongs to reasoning without text. It is not content: subscribers do not receive it, a failure after it alone
    /// can be retried, and an answer of nothing else is empty.
    Echo(Echo),
    /// A tool call with complete arguments. Yielded at the end of the stream unless [`Request::eager_calls`] is set.
    ToolCall(ToolCall),
    /// The tool call with this id has its place here in the answer: what follows comes after it. Not content. Needed only
    /// if something follows a call, because calls are yielded at the end.
    CallHere(String),
    /// A tool call with a check or a decision. Sent by hosts, not by adapters.
    Checked(Box<CheckedCall>),
    /// Content began that the turn does not see: its host passes the answer on as it came. The turn keeps nothing of it.
    /// Sent by hosts, not by adapters.
    Opaque,
    /// Token counts of this call. The last ones apply.
    Usage(Usage),
    /// What else the provider reports of its answer. Comes at its end.
    Reported(Box<Reported>),
    /// No part of the answer has arrived for a while. Not content: subscribers are told, and nothing else changes.
    Silent(Silence),
    /// The call was put off because its target is known to be unavailable. It uses up no attempt. Sent by hosts, not by
    /// adapters; ends the stream.
    Held(Box<Hold>),
    /// The call was not made because the request would barely fit the model's context. Sent by hosts, not by adapters,
    /// and only if [`crate::Turn::takes_nearly_full`] holds; ends the stream.
    NearlyFull,
    /// The summary that the call was made for ([`crate::Turn::is_summarizing`]). Sent by hosts, not by adapters; ends
    /// the stream.
    Summary(Box<Summary>),
    /// The rate limits that the response reports, if any. Sent first, before an answer or a failure. Turns ignore them;
    /// hosts use them to share limits between turns.
    Limits(Limits),
    /// Number of bytes received and kept for later events, such as the arguments of a tool call. Turns ignore it; hosts use
    /// it to bound memory.
    Collected(usize),
    /// The provider's own terminal event.
    Finished(FinishReason),
    /// The call failed, before or inside its stream.
    Failed(Failure),
}

/// Why a call is put off, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The failure that another turn received, or that keeps the call from being made.
    pub failure: Failure,
    /// How long to wait before the call is tried, in milliseconds.
    pub wait_ms: u64,
    /// Whether this turn made no request, because others were refused or come first. Otherwise a request was tried and
    /// reached nobody.
    pub shared: bool,
    /// Why it waits.
    pub because: Because,
    /// Whether the wait counts against the budget of the step.
    pub in_budget: bool,
    /// Whether the end of the wait is unknown, so that a wait charged to the budget ends with the budget at the latest.
    pub open_ended: bool,
}

/// How long a provider call has been silent, and when it times out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// Length of the silence so far, in milliseconds.
    pub silent_ms: u64,
    /// Remaining time before the call fails, in milliseconds; `None` = no limit.
    pub left_ms: Option<u64>,
    /// Whether the connection shows signs of life, such as keep-alive comments.
    pub alive: bool,
}

/// The reason why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FinishReason {
    /// The model completed its answer.
    Stop,
    /// The model called tools.
    ToolCalls,
    /// The model reached its output limit.
    Length,
    /// The provider's content filter stopped the answer.
    ContentFilter,
    /// Another reason, in the provider's own words.
    Other(String),
}
