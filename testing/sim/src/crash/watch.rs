//! A client that watches a conversation across all processes, reconnecting with a cursor.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_orchestrator::{Cursor, Error, Frame, Orchestrator};
use everturn_wire::{AgentEvent, ConversationId};

use super::{book::Book, view::View};
use crate::history;

/// How often a watcher goes back: each time it looks at all that it was told.
const GOES_BACK: u32 = 100;

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
    /// Everything it asked for and was told, also what it forgot when it went back.
    pub(super) all: Vec<history::Seen>,
    /// Chooses the cursors to which it goes back; `None` if it never does.
    restless: Option<fastrand::Rng>,
    went_back: u32,
}

impl Seen {
    /// Chooses a cursor to connect with: the last one, or sometimes an earlier one.
    fn choose(&mut self) -> Cursor {
        let kept = |seen: &history::Seen| match seen {
            history::Seen::Told(end, event) => Some((*end, event.clone())),
            history::Seen::Asked(_) => None,
        };
        if let Some(rng) = &mut self.restless
            && self.went_back < GOES_BACK
            && rng.bool()
            && let Some((cursor, _)) = rng.choice(&self.all).and_then(kept)
        {
            self.went_back += 1;
            self.view = View::default();
            let mut events: Vec<(u64, AgentEvent)> = Vec::new();
            for seen in &self.all {
                match seen {
                    history::Seen::Asked(cursor) => events.retain(|(end, _)| end <= cursor),
                    told => events.extend(kept(told)),
                }
            }
            events.retain(|(end, _)| *end <= cursor);
            // It may have been told, and then forgotten, something else up to there.
            if events.last().is_some_and(|(end, _)| *end == cursor) {
                events.into_iter().for_each(|(_, event)| self.view.apply(event));
                self.cursor = Cursor::from_value(cursor);
            } else {
                self.cursor = Cursor::default();
            }
        }
        self.all.push(history::Seen::Asked(self.cursor.value()));
        self.cursor
    }
}

impl Watcher {
    pub(super) fn new(id: ConversationId, number: usize, book: Book) -> Self {
        let name = format!("{id}.w{number}");
        Self { id, name, book, seen: Arc::default() }
    }

    /// Sometimes goes back to an earlier cursor. The choices are its own, so that they change no others.
    pub(super) fn make_restless(&self, seed: u64) {
        self.seen().restless = Some(fastrand::Rng::with_seed(seed));
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
        let cursor = self.seen().choose();
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
        seen.all.push(history::Seen::Told(frame.end().value(), event.clone()));
        seen.view.apply(event);
    }

    async fn pause(&self, some_ms: &[u64]) {
        let ms = some_ms[self.book.below(some_ms.len() as u64) as usize];
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
}
