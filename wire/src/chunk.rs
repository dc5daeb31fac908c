//! Chunks, which are persisted, and the messages that they make up.

use alloc::{string::String, sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Decision, ErrorReport, Image, StepId};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Role {
    /// The embedder's instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
    /// Tool results.
    Tool,
    /// A word of a newer version. It is not kept: written again, it is `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// One persisted piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Chunk {
    /// Visible text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning.
    Thinking {
        /// The text. Empty if the provider hides it and only requires its echo.
        text: String,
        /// Opaque provider data that must be sent back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        echo: Option<Echo>,
    },
    /// A tool call by the model. The same history has exactly one `tool-result` for it.
    ToolCall {
        /// The provider's id of the call, unique within its step.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// The arguments: any JSON, or the raw text if they did not parse.
        input: Value,
        /// The step that made the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
        /// Opaque provider data that must be sent back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        echo: Option<Echo>,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the call.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// The text that the model receives.
        content: String,
        /// Whether the tool failed, was interrupted or could not be run.
        is_error: bool,
        /// The step that made the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
        /// Images that the model receives with the text, where its API takes them. The text says what they are.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// How it was decided whether the call may run, in order: a review without a decision may come before a person's
        /// answer. Empty if nothing stood in its way. Shown to users, never sent to a model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        decisions: Vec<Decision>,
    },
    /// The failure that ended a turn. Shown to users, never sent to a model.
    Error(ErrorReport),
    /// Text for the model that is neither the user's nor its own: instructions, guidance, or a summary.
    System {
        /// The text.
        text: String,
        /// On a summary: what is sent to a model has it in place of the chunks before this `seq`. Users still see those.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keeps_from: Option<u64>,
    },
    /// An image from the user.
    Image {
        /// Its URL: `https:` or `data:`.
        url: String,
        /// Its media type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A piece of a kind that a newer version added; its content is not kept. A client passes it over. A journal must
    /// not give it out, so that no turn goes on without what the conversation holds.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

impl Chunk {
    /// An error with a message and no details.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(ErrorReport::new(message))
    }
}

/// Opaque provider data, such as a signature or encrypted reasoning, that must be sent back with the piece it came
/// with. It is meaningful only to the provider that issued it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Echo {
    /// Its issuer, and the only one it is sent back to: an API and a host, e.g. `anthropic api.anthropic.com`.
    pub origin: String,
    /// The data, as the provider sent it.
    pub data: Value,
}

/// A chunk with its position in the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoredChunk {
    /// Position in the conversation: starts at 1, has no gaps, in append order.
    pub seq: u64,
    /// Its author.
    pub role: Role,
    /// The chunk.
    // Shared: it may hold an image of megabytes, and every request to a model has it.
    pub chunk: Arc<Chunk>,
    /// Supersedes the chunks from this `seq` up to this chunk: users still see them, but they are no longer sent to a
    /// model. Set on the first chunk of a turn that repeats another one or edits a user message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<u64>,
}

/// Consecutive chunks of one role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Its author.
    pub role: Role,
    /// Its chunks, in order.
    pub chunks: Vec<Arc<Chunk>>,
}

impl Message {
    /// Creates a message from these chunks.
    pub fn new(role: Role, chunks: impl IntoIterator<Item = Chunk>) -> Self {
        Self { role, chunks: chunks.into_iter().map(Arc::new).collect() }
    }

    /// Its chunks, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Chunk> + ExactSizeIterator {
        self.chunks.iter().map(AsRef::as_ref)
    }
}
