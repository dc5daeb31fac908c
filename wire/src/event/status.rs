//! The status of a conversation.

use serde::{Deserialize, Serialize};

/// The status of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ConversationStatus {
    /// A turn is running or waiting.
    Active,
    /// A turn waits for people alone: a tool call needs their approval.
    Queued,
    /// No turn is running.
    Idle,
    /// Closed; a new message reopens it.
    Closed,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
