//! Conversations in a file, one JSON object a line.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Chunk, ConversationId, ConversationStatus, Role};

/// One line of an export. Each conversation's line comes before those of its chunks, which ascend by `seq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ExportLine {
    /// A conversation; its chunks follow.
    Conversation {
        /// The conversation.
        id: ConversationId,
        /// Epoch milliseconds.
        created_at: u64,
        /// Epoch milliseconds of its latest chunk.
        last_activity_at: u64,
        /// The beginning of its first message.
        title: String,
        /// Its status.
        status: ConversationStatus,
        /// The model of its last turn, as `credential/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// The `seq` of its last chunk, which is how many follow; 0 = none.
        latest_seq: u64,
    },
    /// A stored chunk.
    Chunk {
        /// The conversation it is in.
        conversation_id: ConversationId,
        /// Per conversation, starts at 1, never skips.
        seq: u64,
        /// Who it is from.
        role: Role,
        /// The chunk.
        chunk: Chunk,
    },
}
