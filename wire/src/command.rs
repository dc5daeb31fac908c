//! Commands: what a WebSocket client may say.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ConversationId, TurnId};

/// An image that goes with a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// Where it is: `https:` or `data:`.
    pub url: String,
    /// Its media type, when known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mime_type: Option<String>,
}

/// A frame from client to server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all_fields = "camelCase")]
pub enum Command {
    /// Start a turn; without a conversation, in a new one. Subscribes the sender.
    #[serde(rename = "chat.send")]
    ChatSend {
        /// The conversation; a new one when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<ConversationId>,
        /// The user message.
        message: String,
        /// `credential/model`; the server's default when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Images that go with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        images: Option<Vec<Image>>,
        /// How hard the model should think, in the provider's words.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reasoning_effort: Option<String>,
        /// Whether to be sent extension events too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extensions: Option<bool>,
    },
    /// Be sent a conversation's events: what follows the cursor, else the running turn from its start.
    #[serde(rename = "chat.subscribe")]
    ChatSubscribe {
        /// The conversation.
        conversation_id: ConversationId,
        /// The last cursor seen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
        /// Whether to be sent extension events too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extensions: Option<bool>,
    },
    /// No longer be sent a conversation's events.
    #[serde(rename = "chat.unsubscribe")]
    ChatUnsubscribe {
        /// The conversation.
        conversation_id: ConversationId,
    },
    /// Queue a user message: injected at the next tool-result boundary, or the next turn.
    #[serde(rename = "chat.queue")]
    ChatQueue {
        /// The conversation.
        conversation_id: ConversationId,
        /// The user message.
        text: String,
        /// A name of the client's choice for cancelling it; the server makes one when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        message_id: Option<String>,
    },
    /// Take a queued message back.
    #[serde(rename = "chat.queue.cancel")]
    ChatQueueCancel {
        /// The conversation.
        conversation_id: ConversationId,
        /// The message.
        message_id: String,
    },
    /// End the running turn.
    #[serde(rename = "chat.stop")]
    ChatStop {
        /// The conversation.
        conversation_id: ConversationId,
    },
    /// Ask again over the same history: for a turn that ended in an error or was stopped. Subscribes the sender.
    #[serde(rename = "chat.retry")]
    ChatRetry {
        /// The conversation.
        conversation_id: ConversationId,
        /// Its last turn; refused when that is another one by now.
        turn_id: TurnId,
        /// Whether to be sent extension events too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        extensions: Option<bool>,
    },
    /// End the running turn if its step is being retried: it waits, or was asked again and has shown nothing yet.
    #[serde(rename = "retry.abort")]
    RetryAbort {
        /// The conversation.
        conversation_id: ConversationId,
    },
    /// Skip the wait for the next retry; or ask again at once where the provider is silent and nothing was shown.
    #[serde(rename = "retry.now")]
    RetryNow {
        /// The conversation.
        conversation_id: ConversationId,
    },
    /// Turn automatic retries on or off, for one conversation or for all.
    #[serde(rename = "retry.set")]
    RetrySet {
        /// The conversation; all of them when absent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        conversation_id: Option<ConversationId>,
        /// Whether failures are retried.
        enabled: bool,
    },
}

/// A frame that is no command. The text is what the client is told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Not JSON at all.
    #[error("the frame is not JSON: {0}")]
    NotJson(String),
    /// JSON without a `type`.
    #[error("the frame must be a JSON object with a string field \"type\"")]
    NoType,
    /// A `type` that does not exist.
    #[error("unknown command type {kind:?}; known types: {}", Command::TYPES.join(", "))]
    UnknownType {
        /// What was sent.
        kind: String,
    },
    /// A known command with fields missing or of the wrong kind.
    #[error("{kind}: {detail}")]
    BadFields {
        /// The command.
        kind: String,
        /// What is wrong with it.
        detail: String,
        /// The conversation it names, so that the answer can name it too.
        conversation_id: Option<ConversationId>,
    },
}

impl Command {
    /// Every type a client may send.
    pub const TYPES: [&'static str; 10] = [
        "chat.send",
        "chat.subscribe",
        "chat.unsubscribe",
        "chat.queue",
        "chat.queue.cancel",
        "chat.stop",
        "chat.retry",
        "retry.abort",
        "retry.now",
        "retry.set",
    ];

    /// Reads one frame.
    ///
    /// # Errors
    /// When the frame is not JSON, has no or an unknown `type`, or lacks a field.
    pub fn parse(frame: &str) -> Result<Self, CommandError> {
        let value: Value = serde_json::from_str(frame).map_err(|e| CommandError::NotJson(e.to_string()))?;
        let kind = value.get("type").and_then(Value::as_str).ok_or(CommandError::NoType)?;
        if !Self::TYPES.contains(&kind) {
            return Err(CommandError::UnknownType { kind: kind.chars().take(64).collect() });
        }
        let kind = kind.to_string();
        let conversation_id = value.get("conversationId").and_then(Value::as_str).map(ConversationId::from);
        serde_json::from_value(value).map_err(|e| CommandError::BadFields {
            kind,
            detail: e.to_string(),
            conversation_id,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_command_is_told_apart() {
        assert!(matches!(Command::parse("{"), Err(CommandError::NotJson(_))));
        assert_eq!(Command::parse("[]"), Err(CommandError::NoType));
        assert_eq!(Command::parse(r#"{"type":7}"#), Err(CommandError::NoType));
        assert!(matches!(Command::parse(r#"{"type":"x"}"#), Err(CommandError::UnknownType { .. })));
        let missing = Command::parse(r#"{"type":"chat.queue","conversationId":"c"}"#).unwrap_err();
        assert_eq!(missing.to_string(), "chat.queue: missing field `text`");
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let command = Command::parse(r#"{"type":"chat.stop","conversationId":"c","later":1}"#).unwrap();
        assert_eq!(command, Command::ChatStop { conversation_id: "c".into() });
    }
}
