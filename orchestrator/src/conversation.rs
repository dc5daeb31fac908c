//! A conversation in memory: its record, its live event stream and its seat.

mod after_turn;
mod batch;
mod control;
mod follow;
mod inbox;
mod live;
mod loaded;
mod record;
mod seat;
mod seated;

#[cfg(test)]
mod model;
#[cfg(test)]
mod stress;

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use everturn_kernel::{Answer, Millis, RestoreError, Turn, Wait};
use everturn_wire::{ApprovalRequest, ConversationId, RetryPhase, RetryState, StepId, StoredChunk, TurnId};
use tokio::sync::Notify;

use crate::{
    Cursor, Error, Head, JournalError, NodeId, Stored, TurnRecord, Version,
    cluster::Peers,
    log::EventLog,
    memory::{Account, Memory, weight},
    model_settings::OfConversation,
    observer::Observers,
    permission::Grants,
    question::Questions,
    retry_scope::RetryScope,
    shutdown::Shutdown,
    timer::Timers,
};
use seat::Seat;

pub(crate) use after_turn::{AfterTurn, LeftoverMessages};
pub(crate) use batch::{Batch, Called};
pub(crate) use control::Control;
use follow::Follower;
pub(crate) use inbox::Inbox;
pub(crate) use live::{Live, RunningTurn};
pub(crate) use loaded::Loaded;
pub(crate) use record::{Record, continues};
pub(crate) use seat::{Parked, Parking};
pub(crate) use seated::{Command, Seated};

/// Upper bound on the cursor positions of streamed text that was published but lost when the process ended; far above
/// the longest answer. New events begin after it, so that a cursor into lost text leads to what replaced it.
const TOLD_AND_LOST: u64 = 1 << 32;

/// A conversation in memory.
pub(crate) struct Conversation {
    pub(crate) id: ConversationId,
    /// The conversation's retry settings.
    pub(crate) retry: Arc<RetryScope>,
    /// What it sets for its model.
    pub(crate) model_settings: OfConversation,
    /// The tools that are allowed for the whole conversation.
    pub(crate) grants: Grants,
    /// The open questions of its running tools.
    pub(crate) questions: Arc<Questions>,
    /// The memory that it takes.
    pub(crate) account: Account,
    state: Mutex<State>,
    seat: Seat,
    home: Home,
    /// Set once this instance is lost: it is discarded and the conversation is reloaded from the journal.
    loss: OnceLock<Loss>,
    /// Follows what other nodes do with the conversation.
    follower: OnceLock<Follower>,
    /// Notified when the event stream grows, the seat is left or the conversation is lost.
    pub(crate) grew: Notify,
}

/// Process-wide services that a conversation uses.
#[derive(Clone)]
pub(crate) struct Home {
    /// Where it is registered while it is in memory.
    pub(crate) loaded: Arc<Loaded>,
    /// Resumes its turn after a loss.
    pub(crate) timers: Arc<Timers>,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) observers: Observers,
    /// The other nodes; `None` = the journal is not shared.
    pub(crate) peers: Option<Arc<Peers>>,
    /// Bounds the memory of all conversations.
    pub(crate) memory: Arc<Memory>,
}

/// The readable state of a conversation. Locked only briefly, never across an await, and before the seat.
pub(crate) struct State {
    pub(crate) record: Record,
    pub(crate) live: Live,
}

/// Why an instance of a conversation in memory was lost.
#[derive(Clone, Debug)]
pub(crate) enum Loss {
    /// The journal failed, or another process wrote to the conversation although the journal is not shared.
    Unsaved(JournalError),
    /// Another node wrote to the conversation, or this one takes it over. What follows is in the journal.
    Moved,
    /// The session that drove it panicked or was dropped.
    Broken,
    /// The conversation was deleted.
    Deleted,
}

impl Conversation {
    /// Creates a new conversation; nothing of it is durable yet.
    pub(crate) fn new(id: ConversationId, now: Millis, home: Home) -> Arc<Self> {
        let head = Head::new(now);
        let stored = Stored { version: Version::default(), head, turn: None, owner: None };
        Self::from_journal(id, stored, Vec::new(), home, None)
    }

    /// Restores a conversation from the journal. `adopts_from`: this node takes over its unsealed turn from that one, which is
    /// gone.
    pub(crate) fn from_journal(
        id: ConversationId,
        stored: Stored,
        chunks: Vec<Arc<StoredChunk>>,
        home: Home,
        adopts_from: Option<&NodeId>,
    ) -> Arc<Self> {
        let Stored { version, head, turn, owner } = stored;
        let own = home.peers.as_ref().map(|peers| &peers.cluster.node);
        let is_other = |owner: &NodeId| own.is_some_and(|own| own != owner) && adopts_from != Some(owner);
        let owner = owner.filter(|owner| turn.is_some() && is_other(owner));
        let streamed = turn.as_ref().is_some_and(|turn| turn.wait == Wait::Now);
        // A mere follower does not replace the lost text.
        let lost = if streamed && owner.is_none() { TOLD_AND_LOST } else { 0 };
        let end = Cursor::from_value(head.end.value() + lost);
        let queue = turn.as_ref().map(|turn| turn.snapshot.queue().to_vec()).unwrap_or_default();
        let (running, parked) = turn.map(from_record).unzip();
        let account = home.memory.open();
        account.add(chunks.iter().map(|chunk| weight(chunk)).sum());
        let state = State {
            record: Record { version, head, chunks, account: account.clone() },
            live: Live { log: EventLog::new(end), journaled: end, running, queue, measured: None },
        };
        Arc::new(Self {
            id,
            retry: Arc::default(),
            model_settings: OfConversation::default(),
            grants: Grants::default(),
            questions: Arc::default(),
            account,
            state: Mutex::new(state),
            seat: Seat::new(parked, owner, home.shutdown.clone()),
            home,
            loss: OnceLock::new(),
            follower: OnceLock::new(),
            grew: Notify::new(),
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that its turn, which is about to be lost, did not run since it was taken up.
    pub(crate) fn note_unrun(&self) {
        self.home.loaded.note_unrun(&self.id);
    }

    /// Whether that was noted since it was last asked.
    pub(crate) fn take_unrun(&self) -> bool {
        self.home.loaded.take_unrun(&self.id)
    }

    /// Returns an error once the conversation is lost, as this instance is then outdated.
    pub(crate) fn check_kept(&self) -> Result<(), Error> {
        let id = || self.id.clone();
        match self.loss.get() {
            Some(Loss::Unsaved(why)) => Err(Error::NotSaved { id: id(), why: why.clone() }),
            Some(Loss::Moved) => Err(Error::Elsewhere { id: id() }),
            Some(Loss::Broken) => Err(Error::Broken { id: id() }),
            Some(Loss::Deleted) => Err(Error::UnknownConversation { id: id() }),
            None => Ok(()),
        }
    }

    /// Whether this instance was lost.
    pub(crate) fn is_lost(&self) -> bool {
        self.loss.get().is_some()
    }

    /// Whether it only moved: another instance continues it.
    pub(crate) fn has_moved(&self) -> bool {
        matches!(self.loss.get(), Some(Loss::Moved))
    }

    /// The node that drives its unsealed turn, if it is another one, and where that turn begins.
    pub(crate) fn elsewhere(&self) -> Option<(NodeId, Option<Cursor>)> {
        let state = self.state();
        Some((self.seat.elsewhere()?, state.live.running.as_ref().map(|turn| turn.from)))
    }

    /// Whether everything published is in the journal.
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

    /// Returns when the wait of the running turn for a retry ends, in epoch milliseconds.
    pub(crate) fn wait_ends_at(&self) -> Option<u64> {
        self.state().live.running.as_ref()?.retry.as_ref()?.next_at
    }

    /// Whether the running turn waits for a retry.
    pub(crate) fn waits_for_retry(&self) -> bool {
        let waits = |retry: &RetryState| retry.phase == RetryPhase::Waiting;
        self.state().live.running.as_ref().is_some_and(|turn| turn.retry.as_ref().is_some_and(waits))
    }

    /// Returns the tool of this call if the call waits for an answer, as last committed.
    pub(crate) fn asked_tool(&self, turn: &TurnId, step: &StepId, call: &str) -> Option<String> {
        let is_it = |asked: &&ApprovalRequest| {
            asked.turn_id == *turn && asked.step_id == *step && asked.tool_call_id == call
        };
        self.state().live.running.as_ref()?.approvals.iter().find(is_it).map(|asked| asked.tool_name.clone())
    }

    /// Whether a person's answer to this call of the running turn would have an effect, as last committed.
    pub(crate) fn is_asked(&self, turn: &TurnId, answer: &Answer) -> bool {
        self.asked_tool(turn, &StepId::new(turn, answer.step), &answer.call_id).is_some()
    }

    /// Whether this message is in the queue, as last committed.
    pub(crate) fn waits(&self, message_id: &str) -> bool {
        self.state().live.queue.iter().any(|waiting| waiting.message_id == message_id)
    }

    /// Discards this instance: what the journal does not have did not happen. Subscribers only learn of the loss. The
    /// conversation is reloaded from the journal when it is next requested, and its turn is resumed by a timer.
    pub(crate) fn lose(&self, loss: Loss) {
        self.home.loaded.remove(self);
        let may_exist = match &loss {
            Loss::Deleted => false,
            // Even if nothing was saved before.
            Loss::Unsaved(JournalError::Unknown(_)) => true,
            Loss::Unsaved(_) | Loss::Broken | Loss::Moved => self.state().record.version > Version::default(),
        };
        // Before the seat: anyone who finds the seat lost must be able to read the reason.
        let has_moved = matches!(self.loss.get_or_init(|| loss), Loss::Moved);
        if let Some(wait) = self.seat.lose() {
            self.set_timer(wait, false);
        }
        self.grew.notify_waiters();
        if may_exist {
            self.home.timers.try_again(self.id.clone(), !has_moved);
        }
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        self.home.loaded.remove(self);
    }
}

/// Splits a saved turn into its public view and its parked form. A turn that cannot be restored shows no retry.
fn from_record(record: TurnRecord) -> (RunningTurn, Result<Parked, RestoreError>) {
    let TurnRecord { snapshot, wait, from, first_seq, definition } = record;
    match definition.check().and_then(|()| Turn::restore(snapshot)) {
        Ok(turn) => {
            let scope = definition.request.clone();
            (RunningTurn::new(&turn, from, first_seq, scope), Ok(Parked { turn, wait, definition }))
        }
        Err(error) => {
            let (retry, approvals, scope) = (None, Box::default(), None);
            (RunningTurn { from, first_seq, retry, takes_retry_now: false, approvals, scope }, Err(error))
        }
    }
}
