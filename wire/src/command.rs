//! Commands: what a WebSocket client sends.

mod fields;
mod parse;
mod retry_set;

use alloc::{boxed::Box, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    ApprovalMode, ApprovalScope, ConversationId, Image, ModelSettings, Priority, QuestionAction,
    RequiredReport, RetryPatch, RetrySettings, StepId, TurnId, Value, Verdict,
};

pub use parse::CommandError;

/// A frame from client to server. Parse untrusted frames with [`Command::parse`], which bounds the memory used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Command {
    /// Starts a turn, in a new conversation if none is given. Subscribes the sender.
    #[serde(rename = "chat.send")]
    ChatSend {
        /// The conversation; a new one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<ConversationId>,
        /// The user message.
        message: String,
        /// The model, as `provider/model`; the server's default if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Images attached to the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        images: Option<Vec<Image>>,
        /// Reasoning effort, in the provider's terms.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning_effort: Option<String>,
        /// Retry settings for this turn only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Box<RetrySettings>>,
        /// How calls that need a person's approval are treated; if absent, the turn waits for an answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approvals: Option<ApprovalMode>,
        /// The report that the turn must end with; if absent, that of its route or of the server's configuration, if
        /// any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        final_report: Option<Box<RequiredReport>>,
        /// What the conversation sets for its model from this message on, in place of what it set before.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model_settings: Option<Box<ModelSettings>>,
        /// Whether the turn gives way to others when calls have to wait; if absent, it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        priority: Option<Priority>,
        /// Whether to send extension events too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extensions: Option<bool>,
    },
    /// Subscribes to a conversation's events: those after the cursor, or else the running turn from its start.
    #[serde(rename = "chat.subscribe")]
    ChatSubscribe {
        /// The conversation.
        conversation_id: ConversationId,
        /// The last cursor received.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
        /// Whether to send extension events too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extensions: Option<bool>,
    },
    /// Unsubscribes from a conversation's events.
    #[serde(rename = "chat.unsubscribe")]
    ChatUnsubscribe {
        /// The conversation.
        conversation_id: ConversationId,
    },
    /// Queues a user message: it is injected at the next tool-result boundary or starts the next turn.
    #[serde(rename = "chat.queue")]
    ChatQueue {
        /// The conversation.
        conversation_id: ConversationId,
        /// The user message.
        text: String,
        /// An id chosen by the client, used to cancel the message; the server creates one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
    },
    /// Removes a queued message.
    #[serde(rename = "chat.queue.cancel")]
    ChatQueueCancel {
        /// The conversation.
        conversation_id: ConversationId,
        /// The message.
        message_id: String,
    },
    /// Stops the running turn.
    #[serde(rename = "chat.stop")]
    ChatStop {
        /// The conversation.
        conversation_id: ConversationId,
    },
    /// Repeats a turn that ended in an error or was stopped, over the same history; with `seq`, answers a user message
    /// again instead. Refused while a turn runs. Subscribes the sender.
    #[serde(rename = "chat.retry")]
    ChatRetry {
        /// The conversation.
        conversation_id: ConversationId,
        /// The conversation's last turn. The command is refused if another turn is the last by now. Required without
        /// `seq`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        turn_id: Option<TurnId>,
        /// The `seq` of the user message to answer again. Everything after it is superseded.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        seq: Option<u64>,
        /// With `seq`: new text for that message, which is superseded too; its images are kept. 1 byte to 1 MiB.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message: Option<String>,
        /// The model, as `provider/model`, or the route, as `route/name`; the conversation's last one if absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Retry settings for the new turn only.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry: Option<Box<RetrySettings>>,
        /// How calls that need a person's approval are treated; if absent, as in the turn that is repeated or that has
        /// the message.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        approvals: Option<ApprovalMode>,
        /// Whether to send extension events too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extensions: Option<bool>,
    },
    /// Answers a request for approval. A late or second answer changes nothing.
    #[serde(rename = "approval.answer")]
    ApprovalAnswer {
        /// The conversation.
        conversation_id: ConversationId,
        /// The turn.
        turn_id: TurnId,
        /// The step that made the call.
        step_id: StepId,
        /// The id of the call.
        tool_call_id: String,
        /// `allowed` or `denied`; any other word is refused.
        verdict: Verdict,
        /// What is allowed; only this call if absent. Ignored for a denial.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        scope: Option<ApprovalScope>,
        /// The reason, at most 4,096 bytes. The model receives the reason for a denial.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The person's name, shown to later readers of the conversation, at most 200 bytes. Not verified.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The client that the person answers with, such as `page` or `terminal`, at most 200 bytes; `websocket` if
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
    },
    /// Answers a question of a running tool. An answer that does not fit is refused, and the question stays open; a late or second
    /// answer changes nothing.
    #[serde(rename = "question.answer")]
    QuestionAnswer {
        /// The conversation.
        conversation_id: ConversationId,
        /// The question.
        question_id: String,
        /// `accept`, `decline` or `cancel`; any other word is refused.
        action: QuestionAction,
        /// The values of the form's fields by name, as an object of at most 64 KiB. Only with `accept`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        content: Option<Value>,
        /// The person's name, shown to later readers of the conversation, at most 200 bytes. Not verified.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The client that the person answers with, such as `page` or `terminal`, at most 200 bytes; `websocket` if
        /// absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        via: Option<String>,
    },
    /// Stops the running turn if its step is being retried: it waits for a retry, or the retry has shown nothing yet.
    #[serde(rename = "retry.abort")]
    RetryAbort {
        /// The conversation.
        conversation_id: ConversationId,
    },
    /// Skips the wait for the next retry. Also repeats the call of a silent provider, if nothing was shown.
    #[serde(rename = "retry.now")]
    RetryNow {
        /// The conversation.
        conversation_id: ConversationId,
        /// The model, as `provider/model`, or the route, as `route/name`, with which the turn continues; if absent, the
        /// schedule decides.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
    },
    /// Changes the retry settings of a conversation, or the global ones. `enabled` turns automatic retries on or off;
    /// null resets a field, so that it is inherited. Sockets that asked for extension events receive
    /// `retry.settingsChanged`.
    #[serde(rename = "retry.set")]
    RetrySet {
        /// The conversation; absent for the global settings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<ConversationId>,
        /// The changes.
        #[serde(flatten)]
        settings: Box<RetryPatch>,
    },
}

impl Command {
    /// Returns its type on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ChatSend { .. } => "chat.send",
            Self::ChatSubscribe { .. } => "chat.subscribe",
            Self::ChatUnsubscribe { .. } => "chat.unsubscribe",
            Self::ChatQueue { .. } => "chat.queue",
            Self::ChatQueueCancel { .. } => "chat.queue.cancel",
            Self::ChatStop { .. } => "chat.stop",
            Self::ChatRetry { .. } => "chat.retry",
            Self::ApprovalAnswer { .. } => "approval.answer",
            Self::QuestionAnswer { .. } => "question.answer",
            Self::RetryAbort { .. } => "retry.abort",
            Self::RetryNow { .. } => "retry.now",
            Self::RetrySet { .. } => "retry.set",
        }
    }
}
