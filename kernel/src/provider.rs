//! The contract with a model: one request in, a stream of facts out.

use alloc::{string::String, sync::Arc, vec::Vec};

use everturn_wire::{Echo, Failure, Message, Usage, Value};
use futures_core::stream::BoxStream;

use crate::Op;

/// A model API.
///
/// The stream yields any number of facts and ends with exactly one [`StreamEvent::Finished`] or
/// [`StreamEvent::Failed`]; a stream that just ends is taken for a truncation.
/// An adapter makes **one** request per call: retrying is the turn's business, never the adapter's.
/// Dropping the stream cancels the request.
pub trait Provider: Send + Sync + 'static {
    /// Starts one provider call.
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent>;
}

/// One provider call.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// Which call of the turn this is.
    pub op: Op,
    /// The model, in the provider's words.
    pub model: String,
    /// What was said so far, oldest first. Every tool call has its result; error chunks are for people, an adapter
    /// leaves them out.
    pub messages: Vec<Message>,
    /// The tools the model may ask for.
    pub tools: Arc<[ToolSpec]>,
    /// The most tokens the answer may have.
    pub max_output_tokens: Option<u32>,
    /// How hard to think, in the provider's words.
    pub reasoning_effort: Option<String>,
    /// Whether a tool call is told as soon as its arguments are whole, where the API says so. Otherwise calls come with the
    /// end of the stream, so that of an answer that breaks off none is told.
    pub eager_calls: bool,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolSpec {
    /// Its name, unique among the tools of a request.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// What a provider call yields.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamEvent {
    /// Visible text.
    Text(String),
    /// Reasoning.
    Reasoning(String),
    /// What the provider wants back with the reasoning before it, which it closes; with reasoning that has no words,
    /// where none is open. It is not content: watchers are told nothing, a failure after it alone is retried, and an
    /// answer of nothing else is empty.
    Echo(Echo),
    /// A tool call whose arguments are complete. It comes with the end of the stream, unless
    /// [`Request::eager_calls`] asks for it at once.
    ToolCall(ToolCall),
    /// Token counts of this call; the last one counts.
    Usage(Usage),
    /// Nothing of the answer has arrived for a while. No content: watchers are told, nothing else changes.
    Silent(Silence),
    /// The provider's own terminal event.
    Finished(FinishReason),
    /// The call failed, before or inside its stream.
    Failed(Failure),
}

/// How long a provider call has been silent, and how long that is borne.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silence {
    /// How long nothing of the answer has arrived, in milliseconds.
    pub silent_ms: u64,
    /// How much longer it may stay like this before the call fails, in milliseconds; `None` = for ever.
    pub left_ms: Option<u64>,
    /// Whether the connection shows signs of life, such as comments that keep it open.
    pub alive: bool,
}

/// A tool call of the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The provider's id of it, unique in its step.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// What the provider wants back with it.
    pub echo: Option<Echo>,
}

/// The arguments of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// They parsed whole.
    Parsed(Value),
    /// They did not: the tool is not run, the model is told why.
    Malformed {
        /// What was received.
        raw: String,
        /// Why it does not parse.
        reason: String,
    },
}

/// Why the model stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// It said all it wanted.
    Stop,
    /// It wants tools run.
    ToolCalls,
    /// It reached its output limit.
    Length,
    /// The provider cut it for what it said.
    ContentFilter,
    /// The provider's own word.
    Other(String),
}
