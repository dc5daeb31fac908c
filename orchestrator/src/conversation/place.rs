//! The writer's place: who may change a conversation, one at a time.

use std::pin::pin;

use everturn_kernel::{Input, Millis, Turn};
use everturn_wire::{ConversationStatus, QueuedMessage, RetryState};
use tokio::sync::{mpsc, oneshot};

use super::{Control, Conversation, Inbox, State};
use crate::{Cursor, Definition, Error, TurnRecord, Version, shutdown::Shutdown};

/// The running turn, as others see it.
pub(crate) struct Writer {
    /// Boxed, as the channel makes room for many at once.
    pub(crate) control: mpsc::Sender<Box<Control>>,
    /// Set with the turn's first commit.
    pub(crate) turn: Option<RunningTurn>,
    /// Close the conversation when the turn is sealed.
    pub(crate) closing: bool,
    /// The turn is sealed and seen to be, but its place is not given back yet.
    pub(super) sealed: bool,
}

#[derive(Clone)]
pub(crate) struct RunningTurn {
    /// Where its first event begins.
    pub(crate) from: Cursor,
    /// The `seq` of its first chunk.
    pub(crate) first_seq: u64,
    /// The chain of retries that its step is in.
    pub(crate) retry: Option<RetryState>,
    /// Whether *retry now* would do anything.
    pub(crate) takes_retry_now: bool,
}

/// A turn that is in the journal, with the writer's place.
pub(crate) struct Unsealed {
    pub(crate) record: TurnRecord,
    pub(crate) inbox: Inbox,
}

/// What is left to do after a turn.
pub(crate) enum Rest {
    /// Nothing: the writer's place was given back.
    Nothing,
    /// These messages came while the turn was being sealed: the first one is the next turn.
    Turn(Left),
    /// The conversation's status is another one by now: commands came while the turn was being sealed.
    Status(ConversationStatus),
}

/// Messages that came too late for a turn.
#[derive(Default)]
pub(crate) struct Left {
    pub(crate) messages: Vec<QueuedMessage>,
    /// To be answered when they are durable.
    pub(crate) taken: Vec<oneshot::Sender<()>>,
}

impl Left {
    /// Takes in what came for the turn that is over: only messages matter any more. Says whether the conversation is to
    /// be closed.
    pub(crate) fn take_in(&mut self, inbox: &mut Inbox) -> bool {
        let mut closes = false;
        while let Some(control) = inbox.take() {
            closes |= control.closes;
            match control.input {
                Input::Steer(message) => {
                    self.messages.push(message);
                    self.taken.extend(control.taken);
                }
                Input::Unsteer { message_id } => {
                    let before = self.messages.len();
                    self.messages.retain(|waiting| waiting.message_id != message_id);
                    // Else it was said already: that is not answered.
                    self.taken.extend(control.taken.filter(|_| self.messages.len() < before));
                }
                _ => {}
            }
        }
        closes
    }

    /// Nothing is left to do about them. Dropped instead, they are not answered: they came too late for a conversation
    /// that is closed, and open it again.
    fn answer(self) {
        for taken in self.taken {
            let _ = taken.send(());
        }
    }
}

impl Conversation {
    /// Takes the writer's place; where a version is given, only if nothing was written since.
    pub(crate) fn claim(&self, shutdown: &Shutdown, since: Option<Version>) -> Result<Inbox, Error> {
        let mut state = self.state();
        // Under the lock, under which a shutdown looks for writers after it has begun: so it misses none.
        shutdown.check_open()?;
        state.check_kept(&self.id)?;
        let is_since = since.is_none_or(|version| version == state.version);
        if state.writer.is_some() || state.unsealed.is_some() || !is_since {
            return Err(Error::Busy { id: self.id.clone() });
        }
        Ok(state.take_place(shutdown, None))
    }

    /// Takes the writer's place for the turn that is in the journal, if there is one without a session; with a first
    /// command for it, or else only if its wait is over. Not while shutting down.
    pub(crate) fn claim_unsealed(
        &self,
        shutdown: &Shutdown,
        now: Millis,
        control: Option<Box<Control>>,
    ) -> Option<Unsealed> {
        let mut state = self.state();
        shutdown.check_open().ok()?;
        let waits = state.unsealed.as_ref()?.wait.lasts(now);
        if waits && control.is_none() {
            return None;
        }
        let record = *state.unsealed.take()?;
        let turn = RunningTurn {
            from: record.from,
            first_seq: record.first_seq,
            retry: None,
            takes_retry_now: false,
        };
        let inbox = state.take_place(shutdown, Some(turn));
        if let (Some(writer), Some(control)) = (&mut state.writer, control) {
            // The channel is new and has room.
            let _ = writer.take(control);
        }
        Some(Unsealed { record, inbox })
    }

    /// Gives the writer's place back and leaves the turn as it was saved, unless a command came in.
    pub(crate) fn park(&self, inbox: &Inbox, turn: &Turn, definition: &Definition) -> bool {
        let mut state = self.state();
        let running = state.writer.as_ref().and_then(|writer| writer.turn.clone());
        let (true, Some(RunningTurn { from, first_seq, .. })) = (inbox.is_empty(), running) else {
            return false;
        };
        state.writer = None;
        state.unsealed = Some(Box::new(TurnRecord {
            snapshot: turn.snapshot(),
            wait: turn.wait(),
            from,
            first_seq,
            definition: definition.clone(),
        }));
        true
    }

    /// Leaves that turn as it is.
    pub(crate) fn put_back(&self, record: TurnRecord) {
        let mut state = self.state();
        state.writer = None;
        state.unsealed = Some(Box::new(record));
    }

    /// Gives the writer's place back, unless there is something to do first.
    ///
    /// Under the same lock under which commands are sent, so that none is lost in between.
    pub(crate) fn release(&self, inbox: &mut Inbox) -> Rest {
        let mut state = self.state();
        let mut left = Left::default();
        left.take_in(inbox);
        let closing = state.writer.as_ref().is_some_and(|writer| writer.closing);
        let due = if closing { ConversationStatus::Closed } else { ConversationStatus::Idle };
        if let (false, false, Some(writer)) = (closing, left.messages.is_empty(), &mut state.writer) {
            writer.sealed = false;
            // The first one is the next turn.
            state.queue = left.messages.iter().skip(1).cloned().collect();
            drop(state);
            self.grew.notify_waiters();
            return Rest::Turn(left);
        }
        if !closing {
            left.answer();
        }
        state.queue.clear();
        if state.head.status == ConversationStatus::Active || (closing && state.head.status != due) {
            return Rest::Status(due);
        }
        state.writer = None;
        drop(state);
        self.grew.notify_waiters();
        Rest::Nothing
    }

    /// Waits until a sealed turn has given its place back: who has seen its end must find it gone.
    pub(crate) async fn settled(&self) {
        loop {
            let mut changed = pin!(self.grew.notified());
            // Listens before it looks, so that nothing falls in between.
            changed.as_mut().enable();
            if !self.state().writer.as_ref().is_some_and(|writer| writer.sealed) {
                return;
            }
            changed.await;
        }
    }
}

impl State {
    fn take_place(&mut self, shutdown: &Shutdown, turn: Option<RunningTurn>) -> Inbox {
        let (control, inbox) = Inbox::new(shutdown.present());
        self.writer = Some(Writer { control, turn, closing: false, sealed: false });
        inbox
    }
}
