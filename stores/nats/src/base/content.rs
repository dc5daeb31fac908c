//! The content of a base, and how it is made of appends.

use std::sync::Arc;

use bytes::Bytes;
use everturn_ports::{Head, JournalError, kernel::Millis};
use everturn_wire::{Chunk, ConversationId, StoredChunk, TurnMetrics};
use serde::{Deserialize, Serialize};

use crate::{entry::Entry, label::Label, leader::Leader, marks::Mark, parts::hash, payload, record};

/// Number of appends that a base covers.
pub(crate) const APPENDS: u64 = 64;

/// Size of appends from which a base covers no more, in bytes: readers read entire bases.
const BYTES: usize = 512 << 10;

/// What a base has of the appends that it covers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Content {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) chunks: Vec<Arc<StoredChunk>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) seals: Vec<Seal>,
    /// The appends that are stored in parts: their numbers and ids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) large: Vec<(u64, String)>,
}

/// The end of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Seal {
    pub(crate) figures: TurnMetrics,
    /// When it was sealed, in milliseconds.
    at: u64,
    /// The append that sealed it.
    pub(crate) version: u64,
    /// The append before that one.
    pub(crate) before: Mark,
    /// Where the turn's last event ends.
    pub(crate) end: u64,
    /// The number of the conversation's events up to there.
    pub(crate) events: u64,
}

impl Seal {
    /// Returns when the turn was sealed.
    pub(crate) fn at(&self) -> Millis {
        Millis(self.at)
    }
}

/// Content that cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unreadable {
    #[error("it is a base, and its content is not what was written")]
    Hash,
    #[error(transparent)]
    Content(#[from] record::Unreadable),
}

impl Content {
    fn write(&self) -> Result<Bytes, serde_json::Error> {
        let mut content = serde_json::to_vec(self)?;
        content.push(b'\n');
        Ok(content.into())
    }

    /// Reads content with this hash.
    pub(crate) fn read(content: &[u8], expected: &str) -> Result<Self, Unreadable> {
        if hash(content) != expected {
            return Err(Unreadable::Hash);
        }
        let content: Self = record::first_line(content)?.0;
        let is_known = content.chunks.iter().all(|chunk| !matches!(*chunk.chunk, Chunk::Unknown));
        is_known.then_some(content).ok_or(Unreadable::Content(record::Unreadable::Newer))
    }
}

/// Consecutive appends, condensed.
#[derive(Debug)]
pub(crate) struct Segment {
    pub(crate) content: Content,
    /// The last of the appends.
    pub(crate) covers: Mark,
    /// The number of the conversation's events up to there.
    pub(crate) events: u64,
    /// The head after the last one; `None` = there is none.
    pub(super) head: Option<Head>,
    appends: u64,
    bytes: usize,
}

impl Segment {
    /// Creates an empty one that follows this append.
    pub(crate) fn after(covers: Mark, events: u64) -> Self {
        Self { content: Content::default(), covers, events, head: None, appends: 0, bytes: 0 }
    }

    /// Adds the next append.
    pub(crate) async fn add(
        &mut self,
        leader: &Leader,
        id: &ConversationId,
        entry: &Entry,
        label: Label,
    ) -> Result<(), JournalError> {
        let content = payload::content(leader, id, entry, &label).await?;
        let digest = record::digest(&content).map_err(|error| entry.unreadable(id, &error))?;
        if let Some(figures) = digest.sealed {
            let before = label.marks.before();
            self.content.seals.push(Seal {
                figures,
                at: label.head.as_ref().map_or(0, |head| head.last_activity_at.0),
                version: entry.sequence,
                before,
                end: digest.sealed_end.unwrap_or(before.reach.end),
                events: self.events + digest.sealed_events,
            });
        }
        if label.parts.is_some() {
            self.content.large.push((label.number, label.id));
        }
        self.content.chunks.extend(digest.chunks);
        self.events += digest.events;
        self.covers = Mark { number: label.number, version: entry.sequence, reach: label.reach };
        self.head = label.head;
        self.appends += 1;
        self.bytes += content.len();
        Ok(())
    }

    pub(super) fn is_full(&self) -> bool {
        self.appends >= APPENDS || self.bytes >= BYTES
    }

    /// Returns its content and the hash of it.
    pub(super) fn write(&self) -> Result<(Bytes, String), serde_json::Error> {
        let content = self.content.write()?;
        let hash = hash(&content);
        Ok((content, hash))
    }
}
