//! Chunks, which are persisted, and the messages made of them.

use alloc::{string::String, sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Decision, ErrorReport, Image, SettledQuestion, StepId};

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
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
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
    /// A tool call by the model. The history has exactly one `tool-result` for it.
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
        /// Images sent to the model with the text, if its API accepts images. The text describes them.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        images: Vec<Image>,
        /// Decisions on whether the call may run, in order. A review without a decision may precede a person's answer.
        /// Empty if the call needed no permission. Shown to users, never sent to a model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        decisions: Vec<Decision>,
        /// The questions that the call asked people, in order, without the answers. Shown to users, never sent to a model.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        questions: Vec<SettledQuestion>,
    },
    /// The failure that ended a turn. Shown to users, never sent to a model.
    Error(ErrorReport),
    /// Text for the model written by neither the user nor the model: instructions, guidance, or a summary.
    System {
        /// The text.
        text: String,
        /// On a summary: in requests to a model, it replaces the chunks before this `seq`. Users still see those.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        keeps_from: Option<u64>,
    },
    /// An image from the user.
    Image {
        /// Its URL: `https:`, or `data:` in base64.
        url: String,
        /// Its media type, if known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
    /// A kind added by a newer version; its content is not kept. Clients skip it. A journal must not return it, so that
    /// no turn continues without part of the conversation.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

impl Chunk {
    /// Creates an error with a message and no details.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(ErrorReport::new(message))
    }
}

/// Opaque provider data, such as a signature or encrypted reasoning, that must be sent back with the piece it came
/// with. Only the provider that issued it can interpret it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Echo {
    /// The issuer, as API and host, e.g. `anthropic api.anthropic.com`. The data is sent back only to it.
    pub origin: String,
    /// The data, as the provider sent it.
    pub data: Value,
}

impl Echo {
    /// The origin of a call's arguments as they were written, as a string, where that differs from `input`. Sent to every API
    /// in which arguments are text.
    pub const ARGUMENTS: &str = "arguments";
}

/// A chunk with its position in the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoredChunk {
    /// Position in the conversation. Starts at 1, has no gaps, in append order.
    pub seq: u64,
    /// Its author.
    pub role: Role,
    /// The chunk.
    // Shared because it may hold megabytes of image data and is part of every request to a model.
    pub chunk: Arc<Chunk>,
    /// Supersedes the chunks from this `seq` up to this chunk: users still see them, but they are no longer sent to a
    /// model. Set on the first chunk of a turn that repeats another or edits a user message.
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

    /// Returns an iterator over the chunks, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Chunk> + ExactSizeIterator {
        self.chunks.iter().map(AsRef::as_ref)
    }
}
