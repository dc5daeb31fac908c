//! A conversation in memory: its record, what those who watch it see, and the seat of whoever drives it.

mod after_turn;
mod batch;
mod control;
mod inbox;
mod live;
mod seat;
mod seated;
mod shelf;
mod sync;

#[cfg(test)]
mod model;
#[cfg(test)]
mod stress;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use everturn_kernel::{Answer, Millis, RestoreError, Turn, Wait};
use everturn_wire::{
    ApprovalRequest, ConversationId, ConversationStatus, RetryPhase, RetryState, StepId, StoredChunk, TurnId,
};
use tokio::sync::Notify;

use crate::{
    Cursor, Error, Head, JournalError, Stored, TurnRecord, Version, layer::Layer, log::EventLog,
    observer::Observers, permission::Grants, shutdown::Shutdown, timer::Timers,
};
use seat::Seat;

pub(crate) use after_turn::{AfterTurn, LeftoverMessages};
pub(crate) use batch::{Batch, Called};
pub(crate) use control::Control;
pub(crate) use inbox::Inbox;
pub(crate) use live::{Live, RunningTurn};
pub(crate) use seat::Parked;
pub(crate) use seated::{Command, Seated};
pub(crate) use shelf::Shelf;

/// The most cursor places that streamed text can have been told beyond what the journal knows, when the process ended:
/// far above the longest answer. New events begin behind them, so that a cursor to lost text leads to what replaced it.
const TOLD_AND_LOST: u64 = 1 << 32;

/// A conversation in memory.
pub(crate) struct Conversation {
    pub(crate) id: ConversationId,
    /// Its retry settings.
    pub(crate) retry: Arc<Layer>,
    /// The tools that were allowed for all of it.
    pub(crate) grants: Grants,
    state: Mutex<State>,
    seat: Seat,
    home: Home,
    /// Set once the conversation is lost: it goes on as another one, as the journal has it.
    loss: OnceLock<Loss>,
    /// Told whenever the event stream grew or the seat was left.
    pub(crate) grew: Notify,
}

/// What a conversation needs of the process.
#[derive(Clone)]
pub(crate) struct Home {
    /// Where it is found as long as it is in memory.
    pub(crate) shelf: Arc<Shelf>,
    /// What has its turn go on when it was lost.
    pub(crate) timers: Arc<Timers>,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) observers: Observers,
}

/// What there is to read. Held for moments only, never across an await, and before the seat.
pub(crate) struct State {
    pub(crate) record: Record,
    pub(crate) live: Live,
}

/// The conversation as the journal has it.
pub(crate) struct Record {
    pub(crate) version: Version,
    pub(crate) head: Head,
    pub(crate) chunks: Vec<Arc<StoredChunk>>,
}

/// Why a conversation in memory is no longer what it was.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// The journal failed, or someone else wrote to it.
    Unsaved(JournalError),
    /// Whoever drove it broke.
    Broken,
    /// It was deleted.
    Deleted,
}

impl Conversation {
    /// A new one: nothing of it is durable yet.
    pub(crate) fn new(id: ConversationId, now: Millis, home: Home) -> Arc<Self> {
        let head = Head {
            created_at: now,
            last_activity_at: now,
            title: String::new(),
            status: ConversationStatus::Idle,
            model: None,
            end: Cursor::default(),
            last_seq: 0,
        };
        Self::from_journal(id, Stored { version: Version::default(), head, turn: None }, Vec::new(), home)
    }

    /// One that the journal has.
    pub(crate) fn from_journal(
        id: ConversationId,
        stored: Stored,
        chunks: Vec<Arc<StoredChunk>>,
        home: Home,
    ) -> Arc<Self> {
        let Stored { version, head, turn } = stored;
        let streamed = turn.as_ref().is_some_and(|turn| turn.wait == Wait::Now);
        let lost = if streamed { TOLD_AND_LOST } else { 0 };
        let end = Cursor::from_value(head.end.value() + lost);
        let queue = turn.as_ref().map(|turn| turn.snapshot.queue().to_vec()).unwrap_or_default();
        let (running, parked) = turn.map(from_record).unzip();
        let state = State {
            record: Record { version, head, chunks },
            live: Live { log: EventLog::new(end), journaled: end, running, queue, measured: None },
        };
        Arc::new(Self {
            id,
            retry: Arc::default(),
            grants: Grants::default(),
            state: Mutex::new(state),
            seat: Seat::new(parked, home.shutdown.clone()),
            home,
            loss: OnceLock::new(),
            grew: Notify::new(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses everything once the conversation is lost: what is asked here would be asked of what is no longer so.
    pub(crate) fn check_kept(&self) -> Result<(), Error> {
        let id = || self.id.clone();
        match self.loss.get() {
            Some(Loss::Unsaved(why)) => Err(Error::NotSaved { id: id(), why: why.clone() }),
            Some(Loss::Broken) => Err(Error::Broken { id: id() }),
            Some(Loss::Deleted) => Err(Error::UnknownConversation { id: id() }),
            None => Ok(()),
        }
    }

    /// Whether the conversation goes on as another one.
    pub(crate) fn is_lost(&self) -> bool {
        self.loss.get().is_some()
    }

    /// Whether all that was told is in the journal.
    pub(crate) fn is_saved(&self) -> bool {
        let state = self.state();
        state.live.journaled == state.live.log.end()
    }

    /// Whether *retry now* would do anything.
    pub(crate) fn takes_retry_now(&self) -> bool {
        self.state().live.running.as_ref().is_some_and(|turn| turn.takes_retry_now)
    }

    /// Whether the running turn's step is being retried.
    pub(crate) fn is_retrying(&self) -> bool {
        self.state().live.running.as_ref().is_some_and(|turn| turn.retry.is_some())
    }

    /// Whether the running turn waits for a retry.
    pub(crate) fn waits_for_retry(&self) -> bool {
        let waits = |retry: &RetryState| retry.phase == RetryPhase::Waiting;
        self.state().live.running.as_ref().is_some_and(|turn| turn.retry.as_ref().is_some_and(waits))
    }

    /// The tool of that call, if it waits for an answer, as last committed.
    pub(crate) fn asked_tool(&self, turn: &TurnId, step: &StepId, call: &str) -> Option<String> {
        let is_it = |asked: &&ApprovalRequest| {
            asked.turn_id == *turn && asked.step_id == *step && asked.tool_call_id == call
        };
        self.state().live.running.as_ref()?.approvals.iter().find(is_it).map(|asked| asked.tool_name.clone())
    }

    /// Whether a person's answer to that call of the running turn would do anything, as last committed.
    pub(crate) fn is_asked(&self, turn: &TurnId, answer: &Answer) -> bool {
        self.asked_tool(turn, &StepId::new(turn, answer.step), &answer.call_id).is_some()
    }

    /// Whether that message waits in the queue, as last committed.
    pub(crate) fn waits(&self, message_id: &str) -> bool {
        self.state().live.queue.iter().any(|waiting| waiting.message_id == message_id)
    }

    /// Lets go of it: what the journal does not have did not happen. Those who watch are told that, and nothing else. Who
    /// asks for it again has it from the journal; its turn goes on when that can be.
    fn lose(&self, loss: Loss) {
        self.home.shelf.remove(self);
        let may_exist = match &loss {
            Loss::Deleted => false,
            // Even if nothing of it was saved before.
            Loss::Unsaved(JournalError::Unknown(_)) => true,
            Loss::Unsaved(_) | Loss::Broken => self.state().record.version > Version::default(),
        };
        // Before the seat: who finds that lost must find out why.
        let _ = self.loss.set(loss);
        self.seat.lose();
        self.grew.notify_waiters();
        if may_exist {
            self.home.timers.try_again(self.id.clone());
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.home.shelf.remove(self);
    }
}

impl Record {
    fn grow(&mut self, version: Version, head: Head, chunks: Vec<Arc<StoredChunk>>) {
        (self.version, self.head) = (version, head);
        self.chunks.extend(chunks);
    }
}

/// What a saved turn is for those who watch, and for who takes it up. One that cannot be restored shows no retry.
fn from_record(record: TurnRecord) -> (RunningTurn, Result<Parked, RestoreError>) {
    let TurnRecord { snapshot, wait, from, first_seq, definition } = record;
    match Turn::restore(snapshot) {
        Ok(turn) => (RunningTurn::new(&turn, from, first_seq), Ok(Parked { turn, wait, definition })),
        Err(error) => (
            RunningTurn { from, first_seq, retry: None, takes_retry_now: false, approvals: Box::default() },
            Err(error),
        ),
    }
}
