//! Exported conversations, one JSON object per line.

use alloc::string::String;

use serde::{Deserialize, Serialize};

use crate::{Chunk, ConversationId, ConversationStatus, DoneReason, Role};

/// One line of an export. Each conversation precedes its chunks, which are ordered by `seq`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(tag = "type", rename_all = "kebab-case", rename_all_fields = "camelCase")]
pub enum ExportLine {
    /// A conversation; its chunks follow.
    Conversation {
        /// The conversation.
        id: ConversationId,
        /// When it was created, in epoch milliseconds.
        created_at: u64,
        /// When its latest chunk was added, in epoch milliseconds.
        last_activity_at: u64,
        /// The beginning of its first message.
        title: String,
        /// Its status. While a turn runs or waits, its chunks follow as far as they are saved.
        status: ConversationStatus,
        /// The model of its last turn, as `provider/model`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<String>,
        /// Why its last turn ended; absent while a turn runs, if there was none, or if it is not known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        end_reason: Option<DoneReason>,
        /// The `seq` of its last chunk, which is also the number of chunks; 0 = none.
        latest_seq: u64,
    },
    /// A stored chunk.
    Chunk {
        /// Its conversation.
        conversation_id: ConversationId,
        /// Position in the conversation: starts at 1, has no gaps.
        seq: u64,
        /// Its author.
        role: Role,
        /// The chunk.
        chunk: Chunk,
        /// The first `seq` that it supersedes: chunks from there up to this one are no longer sent to models.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        supersedes: Option<u64>,
    },
}
