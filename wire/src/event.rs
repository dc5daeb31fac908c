//! Events: what the process sends to clients while a turn runs.

use alloc::{boxed::Box, string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{
    ApprovalScope, CallerCall, Category, ConversationId, Decision, FinalReport, ForcedBy, Question,
    QuestionKind, QuestionOutcome, SettledQuestion, StepId, TurnId, Verdict,
};

mod because;
mod body;
mod compaction;
mod outcome;
mod output;
mod queue;
mod reason;
mod report;
mod reported;
mod retry;
mod status;
mod target;
mod usage;

pub use because::Because;
pub use compaction::{CompactionCause, CompactionOutcome};
pub use outcome::RetryOutcome;
pub use output::OutputStream;
pub use queue::QueuedMessage;
pub use reason::DoneReason;
pub use report::{ErrorReport, RejectedImage};
pub use reported::Reported;
pub use retry::{RetryPhase, RetryState};
pub use status::ConversationStatus;
pub use target::TargetRole;
pub use usage::Usage;

/// An event, as every transport sends it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AgentEvent {
    /// What happened.
    #[serde(flatten)]
    pub body: EventBody,
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The turn; absent on `status` only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
}

/// What happened. The first fifteen are *base events*; the rest are *extension events* (see [`EventBody::is_extension`]).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum EventBody {
    /// The conversation's status changed, or its retry went from `waiting` to `asking`.
    Status {
        /// The new status.
        status: ConversationStatus,
        /// The retry in progress. Sent with an unchanged status when a wait ends and the provider is called again.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Box<RetryState>>,
    },
    /// The prompt. It is the first event of a turn, so that other subscribers see it.
    UserMessage {
        /// The prompt's text.
        text: String,
    },
    /// The turn begins its first step.
    TurnStart {
        /// The turn that this one repeats: same history, no new message, so no `user-message` precedes it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_of: Option<TurnId>,
        /// The `seq` of the user message that the turn begins with; absent in a turn that repeats another one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_seq: Option<u64>,
        /// What the turn supersedes, as its first chunk will say (see `StoredChunk`); absent = nothing. A turn that
        /// ends before its first chunk supersedes nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        supersedes: Option<u64>,
    },
    /// A piece of visible text.
    TextDelta {
        /// The piece.
        delta: String,
    },
    /// A piece of the model's reasoning.
    ReasoningDelta {
        /// The piece.
        delta: String,
    },
    /// The model called a tool; the arguments are complete.
    ToolCall {
        /// The step that made the call.
        step_id: StepId,
        /// The provider's id of the call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// The arguments: any JSON.
        input: Value,
        /// True if it was told before: what is left of a step is told again after `step-rewound`. Such a repetition is an
        /// extension event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<bool>,
    },
    /// Live output of a running tool. Transient.
    ToolOutput {
        /// The step that made the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
        /// The id of the call.
        tool_call_id: String,
        /// The piece.
        data: String,
        /// The output stream.
        stream: OutputStream,
    },
    /// The result of a tool call. There is exactly one per call.
    ToolResult {
        /// The step that made the call.
        step_id: StepId,
        /// The id of the call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// The text that the model receives.
        content: String,
        /// True if the tool failed, was interrupted or could not be run.
        is_error: bool,
        /// How long the tool ran, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Decisions on whether the call may run, as kept with the result. Empty if the call needed no permission.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        decisions: Vec<Decision>,
        /// The questions that the call asked people, as kept with the result.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        questions: Vec<SettledQuestion>,
        /// True if it was told before, as with `tool-call`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        again: Option<bool>,
    },
    /// Token counts of a step.
    Usage {
        /// The step.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
        /// The counts.
        usage: Usage,
    },
    /// The step's stream ended.
    StepComplete {
        /// The step.
        step_id: StepId,
        /// Time from the provider call to its first token, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ttft_ms: Option<u64>,
        /// Time from the first token to the end of the stream, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        decode_ms: Option<u64>,
        /// `ttftMs + decodeMs`; absent without a first token.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gen_total_ms: Option<u64>,
        /// What the provider reports of the answer; absent if nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reported: Option<Box<Reported>>,
    },
    /// A retry was scheduled: sent once per retry, before its wait. Transient.
    ProviderRetry {
        /// 0-based number of this retry within its step.
        attempt: u32,
        /// The scheduled wait, in milliseconds.
        delay_ms: u64,
        /// The provider's error, verbatim.
        message: String,
        /// The HTTP status as text, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// When the wait ends, in epoch milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_at: Option<u64>,
        /// The category of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        category: Option<Category>,
        /// Maximum number of retries; absent if unbounded, or if this retry does not count against it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_attempts: Option<u32>,
        /// Remaining retry budget after this wait, in milliseconds; absent if unbounded, or if the wait is not charged
        /// to the budget (for a usage limit or the network).
        #[serde(default, skip_serializing_if = "Option::is_none")]
        budget_left_ms: Option<u64>,
        /// The target of the retry, as `provider/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        /// True if the provider asked for this wait.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hinted: Option<bool>,
        /// True if the target asked for a longer wait, which the schedule deliberately cut short.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clamped: Option<bool>,
        /// True if this turn made no call, because others were refused or come first. The wait uses up no attempt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        shared: Option<bool>,
        /// Why it waits; absent if it waits as its schedule says, or if a version sent it that did not tell.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        because: Option<Because>,
        /// The target whose call failed, as `provider/model`; absent if no call was made.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_target: Option<String>,
        /// Time from that call to its failure, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        latency_ms: Option<u64>,
    },
    /// The failure that ends the turn. Sent once, and persisted as an error chunk.
    Error(ErrorReport),
    /// A queued user message was injected at the tool-result boundary.
    Steering {
        /// Its text.
        text: String,
    },
    /// The turn's work ended: the model finished, a failure ended it, or it was stopped.
    Done {
        /// The reason.
        reason: DoneReason,
        /// Time since the start of the turn, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// Token counts, summed over the steps.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        usage: Option<Usage>,
        /// Input plus output tokens of the last step: the context size from which the next request starts.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        context_size: Option<u64>,
        /// Time from the start of the turn to the first token shown, including waits, in milliseconds; absent if
        /// nothing was shown.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_token_ms: Option<u64>,
        /// The model that answered last, as `provider/model`; absent if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Tool calls that the caller must run, sending the results with its next request; absent if there are none.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<CallerCall>,
    },
    /// All chunks are persisted and history is final. The last event of every turn.
    TurnSealed,

    /// Extension: discard what was shown of this step; it will be streamed again. Transient.
    StepRewound {
        /// The step.
        step_id: StepId,
        /// The reason, for display.
        reason: String,
    },
    /// Extension: a series of retries ended. Transient.
    RetryEnded {
        /// Number of retries made.
        attempts: u32,
        /// The outcome.
        outcome: RetryOutcome,
        /// Details, for display.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The target that answered, when the retries recovered.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        target: Option<String>,
    },
    /// Extension: no part of the answer has arrived for a while. Repeated during the silence, which ends with the
    /// step's next event. If nothing of the step has been shown, `retry.now` repeats the call at once. Transient.
    ProviderSilent {
        /// The step.
        step_id: StepId,
        /// Length of the silence so far, in milliseconds.
        silent_ms: u64,
        /// When the call times out if the silence continues, in epoch milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        gives_up_at: Option<u64>,
        /// True if the connection shows signs of life, such as keep-alive comments.
        alive: bool,
    },
    /// Extension: the queue of user messages for the next tool-result boundary changed. Transient.
    QueueChanged {
        /// All queued messages, oldest first.
        queue: Vec<QueuedMessage>,
    },
    /// Extension: the turn switched to another target. Transient.
    TargetSwitched {
        /// The target that failed, as `provider/model`.
        from: String,
        /// The new target, as `provider/model`.
        to: String,
        /// What the target is asked for.
        role: TargetRole,
        /// The reason, for display.
        reason: String,
    },
    /// Extension: the turn returned to its preferred target. Transient.
    TargetRestored {
        /// The target, as `provider/model`.
        to: String,
        /// What the target is asked for.
        role: TargetRole,
    },
    /// Extension: a tool call needs a user's approval. Transient.
    ApprovalRequested {
        /// The step that made the call.
        step_id: StepId,
        /// The id of the call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// The arguments: any JSON.
        input: Value,
        /// Why approval is needed, for display.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// When the call is denied if nobody answers, in epoch milliseconds; absent = never.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<u64>,
    },
    /// Extension: the wait for a user's approval ended. Transient.
    ApprovalResolved {
        /// The step that made the call.
        step_id: StepId,
        /// The id of the call.
        tool_call_id: String,
        /// The outcome.
        verdict: Verdict,
        /// The user's reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// What the user allowed; the call alone if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ApprovalScope>,
        /// The user's name, as their client gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The client that the user answered with, such as `page` or `terminal`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
    },
    /// Extension: a running tool asks a person. Its `tool-result` and the end of its turn settle the question, too, and so does
    /// another question of the same call. Transient.
    QuestionAsked(Box<Question>),
    /// Extension: a question was answered or withdrawn. The answer itself is in no event. Transient.
    QuestionSettled {
        /// The question.
        question_id: String,
        /// The step that made the call.
        step_id: StepId,
        /// The id of the call.
        tool_call_id: String,
        /// The outcome.
        outcome: QuestionOutcome,
        /// Who asked; absent from events of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        asker: Option<String>,
        /// What was asked for; absent from events of older versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        kind: Option<QuestionKind>,
        /// The person's name, as their client gave it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The client that the person answered with, such as `page` or `terminal`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
    },
    /// Extension: a reviewer model started to review a tool call before it runs. Transient.
    ReviewStarted {
        /// The step that made the call.
        step_id: StepId,
        /// The id of the call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
    },
    /// Extension: the review ended; sent once per `review-started`. Transient.
    ReviewCompleted {
        /// The step that made the call.
        step_id: StepId,
        /// The id of the call.
        tool_call_id: String,
        /// The outcome.
        verdict: Verdict,
        /// Number of calls to the reviewer.
        attempt_count: u32,
        /// Duration of the review with all its attempts and waits, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// The reviewer's rating of the risk, in its own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        risk_level: Option<String>,
        /// The reviewer's rating of how far the user asked for the call, in its own words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        user_authorization: Option<String>,
        /// The reviewer's reason.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rationale: Option<String>,
    },
    /// Extension: the history does not fit the model's context; its older part is being summarized. Transient.
    CompactionStarted {
        /// The step whose request does not fit. It is asked again afterwards.
        step_id: StepId,
        /// The reason.
        cause: CompactionCause,
        /// The failure, if an overflow is the cause: the provider's refusal, verbatim, or that the request barely fits.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The HTTP status of the refusal as text, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        code: Option<String>,
        /// The target that refused the request, as `provider/model`; absent if none did.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_target: Option<String>,
        /// When it did, in epoch milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_at: Option<u64>,
        /// Time from the call to the refusal, in milliseconds.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        latency_ms: Option<u64>,
    },
    /// Extension: the compaction ended; sent once per `compaction-started`. The summary is kept as a `system` chunk.
    /// Transient.
    CompactionCompleted {
        /// The step.
        step_id: StepId,
        /// The outcome.
        outcome: CompactionOutcome,
        /// The summary.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        summary: Option<String>,
        /// The `seq` of the first chunk that the model still receives unchanged. The summary replaces the chunks before
        /// it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keeps_from: Option<u64>,
        /// Why there is no summary, for display.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
    },
    /// Extension: a reply failed in a turn that must end with a report. The model is told why and asked again.
    ReportMissing {
        /// The step of the reply.
        step_id: StepId,
        /// What was wrong with it.
        reason: String,
        /// Number of failed replies so far.
        attempt: u32,
        /// Number of failed replies after which the turn ends without a report.
        max_attempts: u32,
    },
    /// Extension: the model is asked for its final report, and nothing else is on offer.
    ReportForced {
        /// The step that is for the report alone.
        step_id: StepId,
        /// The reason.
        by: ForcedBy,
    },
    /// Extension: an attempt to report reduced the remaining steps to one. Sent once per turn.
    StepsCollapsed {
        /// The step of the attempt.
        step_id: StepId,
        /// The maximum number of steps before.
        from: u32,
        /// The maximum number of steps now.
        to: u32,
    },
    /// Extension: the report of a turn that must end with one, sent before its `done`. Exactly one per such turn.
    FinalReport(Box<FinalReport>),

    /// An event from a newer version; its fields are not kept. Skip it: a newer server conveys everything essential
    /// with known events, too.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
