//! What is persisted: chunks, and the messages they make up.

use alloc::{string::String, sync::Arc, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{ErrorReport, StepId};

/// Who a message is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Instructions of the embedder.
    System,
    /// The person.
    User,
    /// The model.
    Assistant,
    /// Results of tools.
    Tool,
}

/// One persisted piece of a message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum Chunk {
    /// Visible text.
    Text {
        /// The text.
        text: String,
    },
    /// The model's reasoning.
    Thinking {
        /// The text. Empty where the provider hides it and only wants its echo: then there is nothing to show.
        text: String,
        /// What the provider wants back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        echo: Option<Echo>,
    },
    /// The model asked for a tool. Has exactly one `tool-result` in the same history.
    ToolCall {
        /// The provider's id of the call, unique in its step.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// The arguments: any JSON; the raw text where they did not parse.
        input: Value,
        /// The step that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
        /// What the provider wants back with it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        echo: Option<Echo>,
    },
    /// What a tool answered.
    ToolResult {
        /// The call that this answers.
        tool_call_id: String,
        /// The tool's name.
        tool_name: String,
        /// What the model is told.
        content: String,
        /// Whether the tool failed, was interrupted or could not be run.
        is_error: bool,
        /// The step that asked.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        step_id: Option<StepId>,
    },
    /// The failure that ended a turn. For people; never sent to a model.
    Error(ErrorReport),
    /// Text of the embedder for the model.
    System {
        /// The text.
        text: String,
    },
    /// An image of the person.
    Image {
        /// Where it is: `https:` or `data:`.
        url: String,
        /// Its media type, when known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        mime_type: Option<String>,
    },
}

impl Chunk {
    /// An error of which nothing but its message is known.
    pub fn error(message: impl Into<String>) -> Self {
        Self::Error(ErrorReport::new(message))
    }
}

/// What a provider wants back, unread, with the piece it came with: a signature or an encrypted form of reasoning.
/// It means nothing to anyone else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Echo {
    /// Who gave it, and alone may get it back: an API and a host, e.g. `anthropic api.anthropic.com`.
    pub origin: String,
    /// What it is, in the provider's own form.
    pub data: Value,
}

/// A chunk with its place in the conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct StoredChunk {
    /// Per conversation, starts at 1, never skips, in append order.
    pub seq: u64,
    /// Who it is from.
    pub role: Role,
    /// The chunk.
    // Shared: it may hold an image of megabytes, and every request to a model has it.
    pub chunk: Arc<Chunk>,
    /// Chunks from this `seq` up to this chunk are superseded: people can still read them, a model is no longer sent
    /// them. Set on the first chunk of a turn that tries another one again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<u64>,
}

/// Consecutive chunks of one role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Who it is from.
    pub role: Role,
    /// Its pieces, in order.
    pub chunks: Vec<Arc<Chunk>>,
}

impl Message {
    /// A message of these pieces.
    pub fn new(role: Role, chunks: impl IntoIterator<Item = Chunk>) -> Self {
        Self { role, chunks: chunks.into_iter().map(Arc::new).collect() }
    }

    /// Its pieces, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Chunk> + ExactSizeIterator {
        self.chunks.iter().map(AsRef::as_ref)
    }
}
