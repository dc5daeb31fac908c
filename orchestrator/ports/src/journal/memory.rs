//! An in-memory journal.

mod events;

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use async_trait::async_trait;
use everturn_kernel::Millis;
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};

use super::{
    Commit, Head, Journal, JournalError, Page, Retention, Stored, StoredEvent, TurnRecord, Unsealed, Version,
    Window,
};
use crate::Cursor;
use events::Events;

/// An in-memory journal. Its content is lost with the process.
#[derive(Debug, Default)]
pub struct MemoryJournal {
    /// Boxed, because a hash table may reserve twice as many slots as there are records.
    conversations: Mutex<HashMap<ConversationId, Box<Record>>>,
    /// Numbers the appends of all conversations together.
    appends: AtomicU64,
}

#[derive(Debug, Default)]
struct Record {
    version: Version,
    head: Option<Head>,
    /// Boxed, because most have none.
    turn: Option<Box<TurnRecord>>,
    chunks: Vec<Arc<StoredChunk>>,
    events: Events,
    sealed: Vec<SealedTurn>,
}

#[derive(Debug)]
struct SealedTurn {
    figures: TurnMetrics,
    at: Millis,
    /// Where its last event ends.
    end: Cursor,
}

impl MemoryJournal {
    /// Creates an empty journal.
    pub fn new() -> Self {
        Self::default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Box<Record>>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T: Default>(&self, id: &ConversationId, read: impl FnOnce(&Record) -> T) -> T {
        self.lock().get(id).map(|record| read(record)).unwrap_or_default()
    }
}

#[async_trait]
impl Journal for MemoryJournal {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        let mut conversations = self.lock();
        let found = conversations.get(id).map(|record| record.version).unwrap_or_default();
        if found != expected {
            return Err(JournalError::Stale { id: id.clone(), expected, found });
        }
        let record = conversations.entry(id.clone()).or_default();
        let Commit { mut head, turn, chunks, mut events, sealed, next_events } = commit;
        if let Some(known) = record.head.take().filter(|known| !known.title.is_empty()) {
            head.title = known.title;
        }
        record.turn = turn;
        record.chunks.extend(chunks);
        if let Some(figures) = sealed {
            let end = events.last().map_or_else(|| record.events.end(), |event| event.end);
            record.sealed.push(SealedTurn { figures: *figures, at: head.last_activity_at, end });
        }
        record.head = Some(head);
        events.extend(next_events);
        record.events.extend(&events);
        record.version = Version(self.appends.fetch_add(1, Ordering::Relaxed) + 1);
        Ok(record.version)
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        Ok(self.read(id, |record| {
            let head = record.head.clone()?;
            Some(Stored { version: record.version, head, turn: record.turn.as_deref().cloned(), owner: None })
        }))
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        Ok(self.read(id, |record| window.of(&record.chunks)))
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        Ok(self.read(id, |record| record.events.after(after).take(limit).collect()))
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        Ok(self.read(id, |record| record.sealed.iter().map(|turn| turn.figures.clone()).collect()))
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        let mut all: Vec<_> = self
            .lock()
            .iter()
            .filter_map(|(id, record)| Some((id, record.head.as_ref()?)))
            .filter(|(id, head)| page.has(id, head))
            .map(|(id, head)| (id.clone(), head.clone()))
            .collect();
        all.sort_by(|a, b| b.1.last_activity_at.cmp(&a.1.last_activity_at).then_with(|| a.0.cmp(&b.0)));
        all.truncate(page.limit.unwrap_or(usize::MAX));
        Ok(all)
    }

    async fn rename(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        let mut conversations = self.lock();
        let head = conversations.get_mut(id).and_then(|record| record.head.as_mut());
        Ok(head.map(|head| head.title = title).is_some())
    }

    async fn remove(&self, id: &ConversationId) -> Result<bool, JournalError> {
        Ok(self.lock().remove(id).is_some())
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        let mut conversations = self.lock();
        let is_idle = |record: &Record| {
            record.turn.is_none()
                && record.head.as_ref().is_some_and(|head| head.last_activity_at < idle_since)
        };
        let idle = conversations.extract_if(|id, record| id.is_ephemeral() && is_idle(record));
        Ok(idle.map(|(id, _)| id).collect())
    }

    async fn drop_events(&self, retention: Retention) -> Result<usize, JournalError> {
        let mut dropped = 0;
        for record in self.lock().values_mut() {
            let last = retention.last_dropped(record.sealed.iter().map(|turn| turn.at));
            if let Some(turn) = last.and_then(|last| record.sealed.get(last)) {
                dropped += record.events.drop_until(turn.end);
            }
        }
        Ok(dropped)
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        let mut waiting: Vec<_> = self
            .lock()
            .iter()
            .filter_map(|(id, record)| Some(Unsealed::new(id.clone(), record.turn.as_ref()?.wait)))
            .filter(|turn| turn.wait.due_at().is_some_and(|at| at < before))
            .collect();
        waiting.sort_by(|a, b| a.wait.due_at().cmp(&b.wait.due_at()).then_with(|| a.id.cmp(&b.id)));
        Ok(waiting)
    }
}
