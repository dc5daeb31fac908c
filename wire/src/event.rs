//! Events: what leaves the process while a turn runs.

use alloc::{boxed::Box, string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Category, ConversationId, StepId, TurnId};

mod outcome;
mod reason;
mod report;
mod retry;
mod usage;

pub use outcome::{RetryOutcome, Verdict};
pub use reason::DoneReason;
pub use report::ErrorReport;
pub use retry::{RetryPhase, RetryState};
pub use usage::Usage;

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
    /// The conversation's status changed, or a retry of its turn went from waiting to asking.
    Status {
        /// What it is now.
        status: ConversationStatus,
        /// The retry under way: sent, with an unchanged status, when a wait is over and the provider is asked again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Box<RetryState>>,
    },
    /// The prompt: first event of a turn, so that a pure watcher sees it.
    UserMessage {
        /// The prompt's text.
        text: String,
    },
    /// Before the first step.
    TurnStart {
        /// The turn that this one tries again: same history, no new message, so no `user-message` comes before it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_of: Option<TurnId>,
    },
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
        /// The step that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
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
    Error(ErrorReport),
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
        /// From the start of the turn to the first token shown, waits included, in milliseconds; absent where nothing
        /// was shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_token_ms: Option<u64>,
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
    /// Extension: nothing of the answer has arrived for a while; sent again as the silence goes on. Over when anything of
    /// the step is told. While nothing was shown of the step, `retry.now` asks again at once. Transient.
    ProviderSilent {
        /// The step.
        step_id: StepId,
        /// How long nothing of the answer has arrived, in milliseconds.
        silent_ms: u64,
        /// When the call is given up if it stays like this, in epoch milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gives_up_at: Option<u64>,
        /// Whether the connection shows signs of life, such as comments that keep it open.
        alive: bool,
    },
    /// Extension: the messages that wait for the next tool-result boundary changed. Transient.
    QueueChanged {
        /// All that wait now, oldest first.
        queue: Vec<QueuedMessage>,
    },
    /// Extension: the turn asks another target from now on. Transient.
    TargetSwitched {
        /// The target that failed, as `credential/model`.
        from: String,
        /// The target asked next, as `credential/model`.
        to: String,
        /// Why, for people.
        reason: String,
    },
    /// Extension: the turn is back at the target it prefers. Transient.
    TargetRestored {
        /// The target, as `credential/model`.
        to: String,
    },
    /// Extension: a tool call waits for a person's permission. Transient.
    ApprovalRequested {
        /// The step that asked.
        step_id: StepId,
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// The arguments: any JSON.
        input: Value,
        /// Why permission is needed, for people.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Extension: the wait for a person's permission is over. Transient.
    ApprovalResolved {
        /// The call.
        tool_call_id: String,
        /// How it ended.
        verdict: Verdict,
    },
    /// Extension: a reviewer model looks at a tool call before it runs. Transient.
    ReviewStarted {
        /// The call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
    },
    /// Extension: the review is over; once per `review-started`. Transient.
    ReviewCompleted {
        /// The call.
        tool_call_id: String,
        /// How it ended.
        verdict: Verdict,
        /// How often the reviewer was asked.
        attempt_count: u32,
        /// How dangerous the reviewer thinks the call is, in its own word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        risk_level: Option<String>,
        /// How far the reviewer thinks the person asked for it, in its own word.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_authorization: Option<String>,
        /// Why it decided so.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rationale: Option<String>,
    },
}

impl EventBody {
    /// Whether only a subscriber that asked for extensions may be sent this.
    pub fn is_extension(&self) -> bool {
        match self {
            Self::Status { .. }
            | Self::UserMessage { .. }
            | Self::TurnStart { .. }
            | Self::TextDelta { .. }
            | Self::ReasoningDelta { .. }
            | Self::ToolCall { .. }
            | Self::ToolOutput { .. }
            | Self::ToolResult { .. }
            | Self::Usage { .. }
            | Self::StepComplete { .. }
            | Self::ProviderRetry { .. }
            | Self::Error { .. }
            | Self::Steering { .. }
            | Self::Done { .. }
            | Self::TurnSealed => false,
            Self::StepRewound { .. }
            | Self::RetryEnded { .. }
            | Self::ProviderSilent { .. }
            | Self::QueueChanged { .. }
            | Self::TargetSwitched { .. }
            | Self::TargetRestored { .. }
            | Self::ApprovalRequested { .. }
            | Self::ApprovalResolved { .. }
            | Self::ReviewStarted { .. }
            | Self::ReviewCompleted { .. } => true,
        }
    }

    /// An error of which nothing but its message is known.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(ErrorReport::new(message))
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
