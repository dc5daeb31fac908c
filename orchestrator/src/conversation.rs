//! A conversation: its history, its live events, and the place of its one writer.

mod batch;
mod control;
mod inbox;
mod place;
mod show;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool};

use everturn_kernel::{Millis, Wait};
use everturn_wire::{ConversationId, ConversationStatus, QueuedMessage, RetryPhase, StoredChunk};
use tokio::sync::Notify;

use crate::{Cursor, Error, Head, JournalError, Stored, TurnRecord, Version, log::EventLog, registry::Shelf};

pub(crate) use batch::Batch;
pub(crate) use control::Control;
pub(crate) use inbox::Inbox;
pub(crate) use place::{Left, Rest, RunningTurn, Unsealed, Writer};

/// The most cursor places that streamed text can have been told beyond what the journal knows, when the process ended:
/// far above the longest answer. New events begin behind them, so that a cursor to lost text leads to what replaced it.
const TOLD_AND_LOST: u64 = 1 << 32;

/// A conversation in memory.
pub(crate) struct Conversation {
    pub(crate) id: ConversationId,
    /// Whether failures are retried by themselves.
    pub(crate) auto_retry: Arc<AtomicBool>,
    state: Mutex<State>,
    /// Where it is found as long as it is in memory.
    shelf: Arc<Shelf>,
    /// Told whenever the event stream grew or the writer left.
    pub(crate) grew: Notify,
}

/// Held for moments only, never across an await.
pub(crate) struct State {
    pub(crate) version: Version,
    pub(crate) head: Head,
    pub(crate) chunks: Vec<Arc<StoredChunk>>,
    pub(crate) log: EventLog,
    /// Up to where the event stream is in the journal; beyond is streamed text.
    pub(crate) journaled: Cursor,
    /// The one writer, while there is one.
    pub(crate) writer: Option<Writer>,
    /// A turn that is in the journal but has no session yet.
    unsealed: Option<Box<TurnRecord>>,
    /// The journal failed: the conversation goes on as another one, as the journal has it.
    pub(crate) lost: Option<JournalError>,
    /// The running turn's queue, as last committed.
    pub(crate) queue: Vec<QueuedMessage>,
}

impl Conversation {
    /// A new one: nothing of it is durable yet.
    pub(crate) fn new(id: ConversationId, now: Millis, shelf: Arc<Shelf>) -> Arc<Self> {
        let head = Head {
            created_at: now,
            last_activity_at: now,
            title: String::new(),
            status: ConversationStatus::Idle,
            model: None,
            end: Cursor::default(),
            last_seq: 0,
        };
        Self::from_journal(id, Stored { version: Version::default(), head, turn: None }, Vec::new(), shelf)
    }

    /// One that the journal has.
    pub(crate) fn from_journal(
        id: ConversationId,
        stored: Stored,
        chunks: Vec<Arc<StoredChunk>>,
        shelf: Arc<Shelf>,
    ) -> Arc<Self> {
        let streamed = stored.turn.as_ref().is_some_and(|turn| turn.wait == Wait::Now);
        let lost = if streamed { TOLD_AND_LOST } else { 0 };
        let end = Cursor::from_value(stored.head.end.value() + lost);
        let queue = stored.turn.as_ref().map(|turn| turn.snapshot.queue().to_vec()).unwrap_or_default();
        let state = State {
            version: stored.version,
            head: stored.head,
            chunks,
            log: EventLog::new(end),
            journaled: end,
            writer: None,
            unsealed: stored.turn.map(Box::new),
            lost: None,
            queue,
        };
        Arc::new(Self {
            id,
            auto_retry: Arc::new(AtomicBool::new(true)),
            state: Mutex::new(state),
            shelf,
            grew: Notify::new(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses everything once the journal failed: what is asked here would be asked of what is no longer so.
    pub(crate) fn check_kept(&self) -> Result<(), Error> {
        self.state().check_kept(&self.id)
    }

    /// The wait of a turn that is parked.
    pub(crate) fn parked(&self) -> Option<Wait> {
        Some(self.state().unsealed.as_ref()?.wait)
    }

    /// Whether all that was told is in the journal.
    pub(crate) fn is_saved(&self) -> bool {
        let state = self.state();
        state.journaled == state.log.end()
    }

    /// Whether *retry now* would do anything.
    pub(crate) fn takes_retry_now(&self) -> bool {
        self.state().running().is_some_and(|turn| turn.takes_retry_now)
    }

    /// Whether the running turn's step is being retried.
    pub(crate) fn is_retrying(&self) -> bool {
        self.state().running().is_some_and(|turn| turn.retry.is_some())
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.shelf.remove(self);
    }
}

impl State {
    fn check_kept(&self, id: &ConversationId) -> Result<(), Error> {
        match &self.lost {
            Some(why) => Err(Error::NotSaved { id: id.clone(), why: why.clone() }),
            None => Ok(()),
        }
    }

    /// The turn that runs or is parked.
    pub(crate) fn running(&self) -> Option<RunningTurn> {
        let parked = || {
            let TurnRecord { from, first_seq, snapshot, .. } = self.unsealed.as_deref()?;
            let retry = snapshot.retry();
            let takes_retry_now = retry.as_ref().is_some_and(|retry| retry.phase == RetryPhase::Waiting);
            Some(RunningTurn { from: *from, first_seq: *first_seq, retry, takes_retry_now })
        };
        self.writer.as_ref().and_then(|writer| writer.turn.clone()).or_else(parked)
    }
}
