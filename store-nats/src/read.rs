//! Reading a conversation's history, events and figures.

use std::{collections::VecDeque, io, sync::Arc};

use everturn_orchestrator::{Cursor, JournalError, Room, StoredEvent, Take, Window};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};

use crate::{error::damaged, journal::NatsJournal, label::Last, record, walk::Walk};

/// Number of chunks that are read first from the end of a window whose length is given in bytes.
const CHUNKS: u64 = 64;

impl NatsJournal {
    /// Costs a request for the last append, a few to find the first, and one for 256 appends. Appends are read whole, with
    /// their events.
    pub(crate) async fn read_chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let Some(last) = self.last(id).await? else { return Ok(Vec::new()) };
        let since = window.since_seq.unwrap_or(0);
        let end = window.before_seq.map_or(u64::MAX, |before| before.saturating_sub(1));
        let end = end.min(last.label.reach.seq);
        let limit = window.limit.unwrap_or(usize::MAX);
        if limit == 0 || since >= end {
            return Ok(Vec::new());
        }
        let mut room = Room::new(window.max_bytes);
        let is_bounded = window.max_bytes.is_some();
        let mut fits = |chunk: &StoredChunk| !is_bounded || room.has(size(chunk));
        match window.take {
            Take::Oldest => {
                let mut chunks = Vec::new();
                let mut walk = Walk::after(&self.leader, id, &last, |reach| reach.seq <= since).await?;
                let mut is_full = false;
                while !is_full && let Some((entry, label)) = walk.next().await? {
                    let found = self.chunks_of(id, &entry, &label).await?;
                    for chunk in found.into_iter().filter(|chunk| since < chunk.seq && chunk.seq <= end) {
                        is_full = is_full || chunks.len() == limit || !fits(&chunk);
                        if !is_full {
                            chunks.push(chunk);
                        }
                    }
                    is_full = is_full || label.reach.seq >= end;
                }
                Ok(chunks)
            }
            Take::Newest => {
                let (mut chunks, mut end, mut length) = (VecDeque::new(), end, CHUNKS);
                if !is_bounded {
                    length = u64::try_from(limit).unwrap_or(u64::MAX);
                }
                // Blocks of chunks, from the newest to the oldest.
                while since < end && chunks.len() < limit {
                    let from = since.max(end.saturating_sub(length));
                    for chunk in self.block(id, &last, from, end).await?.into_iter().rev() {
                        if chunks.len() == limit || !fits(&chunk) {
                            return Ok(chunks.into());
                        }
                        chunks.push_front(chunk);
                    }
                    (end, length) = (from, length.saturating_mul(2));
                }
                Ok(chunks.into())
            }
        }
    }

    /// Returns the chunks with `since < seq <= end`.
    async fn block(
        &self,
        id: &ConversationId,
        last: &Last,
        since: u64,
        end: u64,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let mut chunks = Vec::new();
        let mut walk = Walk::after(&self.leader, id, last, |reach| reach.seq <= since).await?;
        while let Some((entry, label)) = walk.next().await? {
            let found = self.chunks_of(id, &entry, &label).await?;
            chunks.extend(found.into_iter().filter(|chunk| since < chunk.seq && chunk.seq <= end));
            if label.reach.seq >= end {
                break;
            }
        }
        Ok(chunks)
    }

    async fn chunks_of(
        &self,
        id: &ConversationId,
        entry: &crate::entry::Entry,
        label: &crate::label::Label,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let content = entry.content(&self.leader, id, label).await?;
        record::chunks(&content).map_err(|error| entry.unreadable(id, &error))
    }

    /// Costs as much as reading chunks.
    pub(crate) async fn read_events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let (mut events, last) = (Vec::new(), self.last(id).await?);
        let Some(last) = last.filter(|last| limit > 0 && last.label.reach.end > after.value()) else {
            return Ok(events);
        };
        let walk = Walk::after(&self.leader, id, &last, |reach| reach.end <= after.value()).await?;
        // Most appends have an event.
        let mut walk = walk.few(limit.saturating_add(8));
        while events.len() < limit
            && let Some((entry, label)) = walk.next().await?
        {
            if label.reach.end <= after.value() {
                continue;
            }
            let content = entry.content(&self.leader, id, &label).await?;
            let found = record::events(&content).map_err(|error| entry.unreadable(id, &error))?;
            let wanted = found.into_iter().filter(|event| event.end > after);
            events.extend(wanted.take(limit - events.len()));
        }
        Ok(events)
    }

    /// Costs a request for each sealed turn.
    pub(crate) async fn read_metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        let Some(last) = self.last(id).await? else { return Ok(Vec::new()) };
        let (mut figures, mut version) = (Vec::new(), last.sealed_at());
        while version > 0 {
            let Some(entry) = self.leader.at(version).await? else {
                // Removed meanwhile, or damaged.
                let is_there = self.last(id).await?.is_some_and(|now| now.label.born == last.label.born);
                let what = format!("the append with version {version} is missing");
                return if is_there { Err(damaged(id, &what)) } else { Ok(Vec::new()) };
            };
            let label = entry.label(id)?;
            let content = entry.content(&self.leader, id, &label).await?;
            figures.push(record::sealed(&content).map_err(|error| entry.unreadable(id, &error))?);
            version = label.sealed_at;
        }
        figures.reverse();
        Ok(figures)
    }
}

/// Returns the length of a chunk's JSON, in bytes.
fn size(chunk: &StoredChunk) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, &chunk.chunk).map_or(usize::MAX, |()| count.0)
}
