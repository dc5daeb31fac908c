//! Queued messages.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// A user message queued for the next tool-result boundary or the end of the turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QueuedMessage {
    /// The id, used to cancel the message.
    pub message_id: String,
    /// The text.
    pub text: String,
}
