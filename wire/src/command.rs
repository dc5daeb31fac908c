//! Commands: what a WebSocket client may say.

mod fields;
mod parse;

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{ConversationId, TurnId};

pub use parse::CommandError;

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

/// A frame from client to server. Of a stranger, read one with [`Command::parse`], which bounds what that costs.
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
