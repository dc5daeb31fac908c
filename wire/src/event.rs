//! Events: what leaves the process while a turn runs.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Category, ConversationId, StepId, TurnId};

/// One event, as every transport sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
    /// Where it happened.
    pub conversation_id: ConversationId,
    /// In which turn; absent on `status` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
}

/// What happened. The first fifteen are *base events*; the rest are *extension events* (see [`EventBody::is_extension`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum EventBody {
    /// The conversation's status changed.
    Status {
        /// What it is now.
        status: ConversationStatus,
    },
    /// The prompt: first event of a turn, so that a pure watcher sees it.
    UserMessage {
        /// The prompt's text.
        text: String,
    },
    /// Before the first step.
    TurnStart,
    /// Visible text.
    TextDelta {
        /// The next piece.
        delta: String,
    },
    /// Thinking.
    ReasoningDelta {
        /// The next piece.
        delta: String,
    },
    /// The model asked for a tool; the arguments are complete.
    ToolCall {
        /// The step that asked.
        step_id: StepId,
        /// The provider's id of the call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// The arguments: any JSON.
        input: Value,
    },
    /// Live output of a running tool. Transient.
    ToolOutput {
        /// The call.
        tool_call_id: String,
        /// The next piece.
        data: String,
        /// Which of its streams.
        stream: OutputStream,
    },
    /// What a tool answered: exactly one per call.
    ToolResult {
        /// The step that asked.
        step_id: StepId,
        /// The call that this answers.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// What the model is told.
        content: String,
        /// Whether the tool failed, was interrupted or could not be run.
        is_error: bool,
        /// How long it ran, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
    },
    /// Token counts of a step.
    Usage {
        /// The step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
        /// The counts.
        usage: Usage,
    },
    /// After the step's stream ended.
    StepComplete {
        /// The step.
        step_id: StepId,
        /// From the provider call to its first token, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttft_ms: Option<u64>,
        /// From the first token to the end of the stream, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decode_ms: Option<u64>,
        /// `ttftMs + decodeMs` when a first token was seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gen_total_ms: Option<u64>,
    },
    /// A retry was scheduled: sent once per retry, before its wait. Transient.
    ProviderRetry {
        /// 0-based: the Nth retry of this step that is about to happen.
        attempt: u32,
        /// The scheduled wait, in milliseconds.
        delay_ms: u64,
        /// The provider's error, verbatim.
        message: String,
        /// The HTTP code as text, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// When the wait ends, in epoch milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_at: Option<u64>,
        /// What kind of failure it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
        /// How many retries the schedule has in all, when it is bounded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_attempts: Option<u32>,
        /// What is left of the cumulative wait after this one, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_left_ms: Option<u64>,
        /// Who is asked next, as `credential/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// True when the provider asked for this wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hinted: Option<bool>,
    },
    /// The failure that ends the turn; once, and persisted as an error chunk too.
    Error {
        /// The failure, verbatim.
        message: String,
        /// The HTTP code as text, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// What kind of failure it was.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
    },
    /// A queued user message was injected at the tool-result boundary.
    Steering {
        /// Its text.
        text: String,
    },
    /// The model finished.
    Done {
        /// Why.
        reason: DoneReason,
        /// From the start of the turn, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Sum over the steps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Input plus output tokens of the last step: what the next request starts from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_size: Option<u64>,
    },
    /// All chunks are persisted, history is final. The last event of every turn.
    TurnSealed,

    /// Extension: drop what was shown of this step; it will be streamed again. Transient.
    StepRewound {
        /// The step.
        step_id: StepId,
        /// Why, for people.
        reason: String,
    },
    /// Extension: a series of retries is over. Transient.
    RetryEnded {
        /// How many retries there were.
        attempts: u32,
        /// How it ended.
        outcome: RetryOutcome,
        /// More about it, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Extension: the messages that wait for the next tool-result boundary changed. Transient.
    QueueChanged {
        /// All that wait now, oldest first.
        queue: Vec<QueuedMessage>,
    },
}

impl EventBody {
    /// Whether only a subscriber that asked for extensions may be sent this.
    pub fn is_extension(&self) -> bool {
        matches!(self, Self::StepRewound { .. } | Self::RetryEnded { .. } | Self::QueueChanged { .. })
    }

    /// Whether this is streamed text: cheap, frequent, and durable only as part of its chunk.
    pub fn is_delta(&self) -> bool {
        matches!(self, Self::TextDelta { .. } | Self::ReasoningDelta { .. } | Self::ToolOutput { .. })
    }

    /// The streamed text of a `text-delta` or `reasoning-delta`.
    pub fn delta(&self) -> Option<&str> {
        match self {
            Self::TextDelta { delta } | Self::ReasoningDelta { delta } => Some(delta),
            _ => None,
        }
    }
}

/// The status of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum ConversationStatus {
    /// A turn runs or waits.
    Active,
    /// A turn is wanted but has not begun.
    Queued,
    /// Nothing runs.
    Idle,
    /// Closed by someone; a new message opens it again.
    Closed,
}

/// Which stream of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum OutputStream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Token counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request, those read from a cache included.
    pub input_tokens: u64,
    /// Tokens of the answer, reasoning included.
    pub output_tokens: u64,
    /// Of the request's tokens, those read from a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_read_tokens: Option<u64>,
    /// Of the request's tokens, those written to a cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_write_tokens: Option<u64>,
}

impl Usage {
    /// Adds another step's counts.
    pub fn add(&mut self, other: &Self) {
        let sum = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            (a, b) => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cache_read_tokens = sum(self.cache_read_tokens, other.cache_read_tokens);
        self.cache_write_tokens = sum(self.cache_write_tokens, other.cache_write_tokens);
    }
}

/// Why the model finished.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum DoneReason {
    /// It said all it wanted.
    Stop,
    /// It asked for tools and was not called again.
    ToolCalls,
    /// It reached its output limit.
    Length,
    /// The provider cut it for what it said.
    ContentFilter,
    /// The configured number of steps was reached.
    MaxSteps,
    /// A failure ended the turn.
    Error,
    /// A person or a program ended the turn.
    Aborted,
    /// The provider's own word.
    Other(String),
}

impl DoneReason {
    /// The word on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool-calls",
            Self::Length => "length",
            Self::ContentFilter => "content-filter",
            Self::MaxSteps => "max-steps",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for DoneReason {
    fn from(word: String) -> Self {
        match word.as_str() {
            "stop" => Self::Stop,
            "tool-calls" => Self::ToolCalls,
            "length" => Self::Length,
            "content-filter" => Self::ContentFilter,
            "max-steps" => Self::MaxSteps,
            "error" => Self::Error,
            "aborted" => Self::Aborted,
            _ => Self::Other(word),
        }
    }
}

impl From<DoneReason> for String {
    fn from(reason: DoneReason) -> Self {
        match reason {
            DoneReason::Other(word) => word,
            known => known.as_str().into(),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for DoneReason {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "DoneReason".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Why the model finished: stop, tool-calls, length, content-filter, max-steps, error, aborted, or a provider's own word.",
            "type": "string"
        })
    }
}

/// How a series of retries ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RetryOutcome {
    /// The provider answered.
    Recovered,
    /// The schedule or the budget has no further retry.
    Exhausted,
    /// Someone ended the wait.
    Cancelled,
    /// The next wait would be longer than is allowed.
    TooLong,
    /// The next failure was of a kind that waiting does not cure.
    NotRetryable,
}

/// A user message that waits for the next tool-result boundary, or for the end of the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedMessage {
    /// Names it for cancelling.
    pub message_id: String,
    /// Its text.
    pub text: String,
}
