//! A part of a conversation's history.

use std::{cmp::Ordering, sync::Arc};

use everturn_wire::StoredChunk;

use crate::json;

/// Selects chunks with `since < seq < before`, up to the limits, from one end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// Exclusive lower bound.
    pub since_seq: Option<u64>,
    /// Exclusive upper bound.
    pub before_seq: Option<u64>,
    /// Maximum number of chunks.
    pub limit: Option<usize>,
    /// Maximum total size, in bytes of JSON of [`StoredChunk::chunk`]; at least one chunk is returned.
    pub max_bytes: Option<usize>,
    /// Which end to take when a limit applies.
    pub take: Take,
}

/// Which end of a window to take when a limit applies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Take {
    /// The newest chunks.
    #[default]
    Newest,
    /// The oldest chunks.
    Oldest,
}

impl Window {
    /// Applies the window to all chunks of a conversation, in ascending order.
    pub(super) fn of(self, all: &[Arc<StoredChunk>]) -> Vec<Arc<StoredChunk>> {
        let from = all.partition_point(|chunk| chunk.seq <= self.since_seq.unwrap_or(0));
        let to = all.partition_point(|chunk| self.before_seq.is_none_or(|before| chunk.seq < before));
        let inside = all.get(from..to).unwrap_or_default();
        match self.take {
            Take::Oldest => self.limited(inside.iter()).cloned().collect(),
            Take::Newest => {
                let count = self.limited(inside.iter().rev()).count();
                inside[inside.len() - count..].to_vec()
            }
        }
    }

    fn limited<'a>(
        self,
        chunks: impl Iterator<Item = &'a Arc<StoredChunk>>,
    ) -> impl Iterator<Item = &'a Arc<StoredChunk>> {
        let mut room = Room::new(self.max_bytes);
        let size =
            move |chunk: &StoredChunk| if self.max_bytes.is_some() { json::size(&chunk.chunk) } else { 0 };
        chunks.take(self.limit.unwrap_or(usize::MAX)).take_while(move |chunk| room.has(size(chunk)))
    }
}

/// The remaining bytes of a window.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    left: Option<usize>,
    empty: bool,
}

impl Room {
    /// Creates room for this many bytes; `None` = no limit.
    pub fn new(max_bytes: Option<usize>) -> Self {
        Self { left: max_bytes, empty: true }
    }

    /// Takes room for a chunk of this many bytes. Returns whether it fits; the first one always does.
    pub fn has(&mut self, bytes: usize) -> bool {
        let Some(left) = self.left else { return true };
        let fits = self.empty || bytes.cmp(&left) != Ordering::Greater;
        (self.left, self.empty) = (Some(left.saturating_sub(bytes)), false);
        fits
    }
}
