//! The provider contract: one request in, a stream of events out.

use alloc::{boxed::Box, string::String, sync::Arc, vec::Vec};

use everturn_wire::{Echo, Failure, Message, Parameters, TraceContext, Usage, Value};
use futures_core::stream::BoxStream;

use crate::{CheckedCall, Op, Summary};

/// A model API.
///
/// The stream yields any number of events and ends with exactly one [`StreamEvent::Finished`] or
/// [`StreamEvent::Failed`]. A stream that ends without either counts as truncated. An adapter makes **one** request per
/// call and never retries: that is up to the turn. Dropping the stream cancels the request.
pub trait Provider: Send + Sync + 'static {
    /// Starts one provider call.
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent>;

    /// Returns the names of the parameters that are set and that this API does not have, or not in this form: a turn with them
    /// is refused before it begins. Default: all but `maxOutputTokens`, as an unknown API has none of them.
    fn refuses(&self, parameters: &Parameters) -> Vec<&'static str> {
        parameters.names()
    }

    /// Describes the API for traces and logs. Default: nothing is known.
    fn about(&self) -> ProviderInfo {
        ProviderInfo::default()
    }
}

/// What traces and logs say of a model API. Free of secrets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ProviderInfo {
    /// The vendor or API, by OpenTelemetry's names for `gen_ai.provider.name`, e.g. `openai`.
    pub name: Option<&'static str>,
    /// The base URL without user information, query and fragment.
    pub url: Option<Arc<str>>,
}

impl ProviderInfo {
    /// An API of that name at that base URL.
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
    /// What the request passes on to the API: parameters that it has ([`Provider::refuses`]). Their limit on the answer is
    /// in `max_output_tokens`.
    pub parameters: Arc<Parameters>,
    /// Maximum number of tokens in the answer.
    pub max_output_tokens: Option<u32>,
    /// Reasoning effort, in the provider's terms.
    pub reasoning_effort: Option<String>,
    /// Whether to yield a tool call as soon as its arguments are complete, if the API marks that. Otherwise calls are
    /// yielded at the end of the stream, so that an interrupted answer yields none.
    pub eager_calls: bool,
    /// The trace that the call belongs to, sent to the API as `traceparent` and `tracestate`.
    pub trace: Option<TraceContext>,
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
    /// Opaque data that must be sent back with the reasoning before it, which it closes. If no reasoning is open, it
    /// belongs to reasoning without text. It is not content: subscribers do not receive it, a failure after it alone is
    /// retried, and an answer of nothing else is empty.
    Echo(Echo),
    /// A tool call with complete arguments. Yielded at the end of the stream, unless [`Request::eager_calls`] is set.
    ToolCall(ToolCall),
    /// A tool call that may not simply run. Told by hosts, not by adapters.
    Checked(Box<CheckedCall>),
    /// Token counts of this call; the last ones apply.
    Usage(Usage),
    /// Nothing of the answer has arrived for a while. Not content: subscribers are told, and nothing else changes.
    Silent(Silence),
    /// The call was not made, as others found out that it is of no use yet: it is put off and uses up no attempt. Told by
    /// hosts, not by adapters; ends the stream.
    Held(Box<Hold>),
    /// The call was not made: the request would hardly fit the model's context. Told by hosts, not by adapters, and only where
    /// [`crate::Turn::may_compact_ahead`]; ends the stream.
    NearlyFull,
    /// The summary that the call was for ([`crate::Turn::is_summarizing`]). Told by hosts, not by adapters; ends the stream.
    Summary(Box<Summary>),
    /// What is left of the provider's limit on requests, where its headers say so. Told before anything else of a response,
    /// whether it is an answer or a refusal. It means nothing to a turn: it is for hosts that have turns share limits.
    Quota(RequestQuota),
    /// The provider's own terminal event.
    Finished(FinishReason),
    /// The call failed, before or inside its stream.
    Failed(Failure),
}

/// What is left of a provider's limit on requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestQuota {
    /// How many requests a whole window has, if the provider says so.
    pub limit: Option<u32>,
    /// How many are left of this window.
    pub remaining: u32,
    /// When the next window begins, in milliseconds from now.
    pub reset_ms: u64,
}

/// Why a call is put off, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// What others were told, or what keeps every call from being made.
    pub failure: Failure,
    /// How long to wait before the call is tried, in milliseconds.
    pub wait_ms: u64,
    /// Whether another turn was refused, so that this one made no request. Otherwise it was tried, and reached nobody.
    pub shared: bool,
    /// Whether the wait counts against the budget of the step.
    pub in_budget: bool,
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

/// A tool call by the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The provider's id of the call, unique within its step.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// Opaque provider data that must be sent back with it.
    pub echo: Option<Echo>,
}

/// The arguments of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// They parsed as JSON.
    Parsed(Value),
    /// They did not parse. The tool is not run, and the model is told why.
    Malformed {
        /// The text received.
        raw: String,
        /// Why it does not parse.
        reason: String,
    },
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
    /// Another reason, in the provider's own word.
    Other(String),
}
