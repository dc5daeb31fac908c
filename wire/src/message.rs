//! Server messages: what the server sends over a WebSocket.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{AgentEvent, CallInfo, ConversationId, ConversationStatus, RetrySettingsState};

/// The only workspace at present. Clients group conversations by workspace.
pub const DEFAULT_WORKSPACE: &str = "default";

/// A frame from server to client.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum ServerMessage {
    /// An event, verbatim.
    #[serde(rename = "chat.delta")]
    ChatDelta {
        /// The event.
        event: AgentEvent,
        /// The position in the event stream right after it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    /// A command failed.
    #[serde(rename = "chat.error")]
    ChatError {
        /// The conversation, if the command named one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<ConversationId>,
        /// The message that was not queued, if the command was a `chat.queue` with a `messageId`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
        /// What is wrong, and what to do.
        message: String,
    },
    /// A conversation's status changed; sent to every client that sees the conversation.
    #[serde(rename = "conversation.statusChanged")]
    StatusChanged {
        /// The conversation.
        conversation_id: ConversationId,
        /// Its new status.
        status: ConversationStatus,
        /// The workspace it belongs to.
        workspace_id: String,
    },
    /// Retry settings changed. Changes of a conversation's settings are sent to its subscribers with extension events;
    /// changes of the global settings, to every subscriber with extension events.
    #[serde(rename = "retry.settingsChanged")]
    RetrySettingsChanged(RetrySettingsState),
    /// A call that is passed through began, waits, goes on or is over. Sent to every subscriber with extension events that sees
    /// the call.
    #[serde(rename = "call.changed")]
    CallChanged(CallInfo),
    /// A frame could not be parsed.
    #[serde(rename = "error")]
    Error {
        /// What is wrong, and what to do.
        message: String,
    },
    /// A frame from a newer version; its fields are not kept. Skip it.
    #[serde(rename = "unknown", other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
