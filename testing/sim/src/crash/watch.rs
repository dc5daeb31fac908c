//! A client that watches a conversation across all processes, reconnecting with a cursor.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_orchestrator::{Cursor, Error, Frame, Orchestrator};
use everturn_wire::{AgentEvent, ConversationId};

use super::{book::Book, view::View};

/// A watcher. It outlives the processes. Clones share it.
#[derive(Clone)]
pub(super) struct Watcher {
    pub(super) id: ConversationId,
    pub(super) name: String,
    book: Book,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
pub(super) struct Seen {
    pub(super) cursor: Cursor,
    pub(super) view: View,
}

impl Watcher {
    pub(super) fn new(id: ConversationId, number: usize, book: Book) -> Self {
        let name = format!("{id}.w{number}");
        Self { id, name, book, seen: Arc::default() }
    }

    pub(super) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Watches as long as the process runs.
    pub(super) async fn watch(self, orchestrator: Orchestrator) {
        loop {
            // Some connect at once, some late, and some are slow.
            self.pause(&[0, 0, 700, 90_000]).await;
            match self.follow(&orchestrator).await {
                // The conversation does not exist yet.
                Ok(()) | Err(Error::UnknownConversation { .. }) => {}
                Err(error) if self.book.excuses(&error) => {}
                Err(error) => self.book.wrong(format!("{} cannot watch: {error}", self.name)),
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
    }

    /// Watches until the connection breaks.
    pub(super) async fn follow(&self, orchestrator: &Orchestrator) -> Result<(), Error> {
        let cursor = self.seen().cursor;
        let mut events = orchestrator.subscribe(&self.id, Some(cursor), true).await?;
        loop {
            let frame = events.next().await?;
            self.take(&frame);
            match self.book.below(24) {
                0 => return Ok(()),
                1 => self.pause(&[1, 400, 20_000]).await,
                _ => {}
            }
        }
    }

    fn take(&self, frame: &Frame) {
        let Ok(event) = serde_json::from_slice::<AgentEvent>(&frame.event()) else {
            return self.book.wrong(format!("{}: no event: {:?}", self.name, frame.event()));
        };
        let mut seen = self.seen();
        if frame.end() <= seen.cursor {
            self.book.wrong(format!("{}: told {:?} at {}, which it had", self.name, event.body, frame.end()));
        }
        self.book.told(&self.name, &event, frame.end().value());
        seen.cursor = frame.end();
        seen.view.apply(event);
    }

    async fn pause(&self, some_ms: &[u64]) {
        let ms = some_ms[self.book.below(some_ms.len() as u64) as usize];
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
