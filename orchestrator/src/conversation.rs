//! A conversation: its history, its live events, and the place of its one writer.

mod batch;

use std::{
    mem,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::AtomicBool},
};

use everturn_kernel::{Input, Millis, Turn, Want};
use everturn_wire::{
    ConversationId, ConversationStatus, EventBody, QueuedMessage, RetryState, StoredChunk, TurnId,
};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::{Cursor, Error, Frame, Head, Stored, TurnRecord, Version, log::EventLog};

pub(crate) use batch::Batch;

/// Commands that may wait for a turn to take them in.
const CONTROL_PLACES: usize = 64;
/// Messages that may wait in a conversation.
const MAX_QUEUE: usize = 32;

/// The most cursor places that streamed text can have been told beyond what the journal knows, when the process ended:
/// far above the longest answer. New events begin behind them, so that a cursor to lost text leads to what replaced it.
const TOLD_AND_LOST: u64 = 1 << 32;

/// A conversation in memory.
pub(crate) struct Conversation {
    pub(crate) id: ConversationId,
    /// Whether failures are retried by themselves.
    pub(crate) auto_retry: Arc<AtomicBool>,
    state: Mutex<State>,
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
    /// Watchers were told the end of that turn already.
    broken: bool,
    /// The journal failed: the conversation goes on elsewhere, as the journal has it.
    pub(crate) gone: bool,
    /// The running turn's queue, as last committed.
    pub(crate) queue: Vec<QueuedMessage>,
}

/// The running turn, as others see it.
pub(crate) struct Writer {
    /// Boxed, as the channel makes room for many at once.
    pub(crate) control: mpsc::Sender<Box<Control>>,
    /// Set with the turn's first commit.
    pub(crate) turn: Option<RunningTurn>,
    /// Close the conversation when the turn is sealed.
    pub(crate) closing: bool,
    /// The turn is sealed and seen to be, but its place is not given back yet.
    sealed: bool,
}

#[derive(Clone)]
pub(crate) struct RunningTurn {
    /// Where its first event begins.
    pub(crate) from: Cursor,
    /// The `seq` of its first chunk.
    pub(crate) first_seq: u64,
    /// The wait that is under way.
    pub(crate) retry: Option<RetryState>,
}

/// A turn that is in the journal, with the writer's place.
pub(crate) struct Unsealed {
    pub(crate) record: TurnRecord,
    pub(crate) inbox: mpsc::Receiver<Box<Control>>,
    /// Watchers were told its end already.
    pub(crate) broken: bool,
}

/// What is left to do after a turn.
pub(crate) enum Rest {
    /// Nothing: the writer's place was given back.
    Nothing,
    /// These messages wait: the first one is the next turn.
    Turn(Vec<QueuedMessage>),
    /// The conversation's status is another one by now: commands came while the turn was being sealed.
    Status(ConversationStatus),
}

/// A command for the running turn.
pub(crate) struct Control {
    pub(crate) input: Input,
    /// Answered when the turn has taken the command in and what came of it is durable.
    pub(crate) taken: Option<oneshot::Sender<()>>,
    /// Close the conversation when the turn is sealed.
    pub(crate) closes: bool,
}

impl Conversation {
    /// A new one: nothing of it is durable yet.
    pub(crate) fn new(id: ConversationId, now: Millis) -> Self {
        let head = Head {
            created_at: now,
            last_activity_at: now,
            title: String::new(),
            status: ConversationStatus::Idle,
            model: None,
            end: Cursor::default(),
            last_seq: 0,
        };
        Self::from_journal(id, Stored { version: Version::default(), head, turn: None }, Vec::new(), false)
    }

    /// One that the journal has. `broken`: watchers were told an end of its last turn that the journal does not have.
    pub(crate) fn from_journal(
        id: ConversationId,
        stored: Stored,
        chunks: Vec<Arc<StoredChunk>>,
        broken: bool,
    ) -> Self {
        let streamed = stored.turn.as_ref().is_some_and(|turn| turn.wake_at.is_none());
        let lost = if streamed || broken { TOLD_AND_LOST } else { 0 };
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
            broken,
            gone: false,
            queue,
        };
        Self {
            id,
            auto_retry: Arc::new(AtomicBool::new(true)),
            state: Mutex::new(state),
            grew: Notify::new(),
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the writer's place.
    pub(crate) fn claim(&self) -> Result<mpsc::Receiver<Box<Control>>, Error> {
        let mut state = self.state();
        if state.writer.is_some() || state.unsealed.is_some() {
            return Err(Error::Busy { id: self.id.clone() });
        }
        Ok(state.take_place(None))
    }

    /// Takes the writer's place for the turn that is in the journal, if there is one without a session; with a first
    /// command for it, or else only if its wait is over.
    pub(crate) fn claim_unsealed(&self, now: Millis, control: Option<Box<Control>>) -> Option<Unsealed> {
        let mut state = self.state();
        let waits = !state.broken && state.unsealed.as_ref()?.wake_at.is_some_and(|at| at > now);
        if waits && control.is_none() {
            return None;
        }
        let record = *state.unsealed.take()?;
        let turn = RunningTurn { from: record.from, first_seq: record.first_seq, retry: None };
        let inbox = state.take_place(Some(turn));
        if let (Some(writer), Some(control)) = (&mut state.writer, control) {
            // The channel is new and has room.
            let _ = writer.take(control);
        }
        Some(Unsealed { record, inbox, broken: mem::take(&mut state.broken) })
    }

    /// Gives the writer's place back while the turn waits, unless a command came in.
    pub(crate) fn park(
        &self,
        inbox: &mpsc::Receiver<Box<Control>>,
        turn: &Turn,
        wake_at: Millis,
        reasoning_effort: Option<&String>,
    ) -> bool {
        let mut state = self.state();
        let running = state.writer.as_ref().and_then(|writer| writer.turn.clone());
        let (true, Some(RunningTurn { from, first_seq, .. })) = (inbox.is_empty(), running) else {
            return false;
        };
        state.writer = None;
        state.unsealed = Some(Box::new(TurnRecord {
            snapshot: turn.snapshot(),
            wake_at: Some(wake_at),
            from,
            first_seq,
            reasoning_effort: reasoning_effort.cloned(),
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
    pub(crate) fn release(&self, inbox: &mut mpsc::Receiver<Box<Control>>, left: Vec<QueuedMessage>) -> Rest {
        let mut state = self.state();
        let mut left = left;
        while let Ok(control) = inbox.try_recv() {
            match control.input {
                Input::Steer(message) => left.push(message),
                Input::Unsteer { message_id } => left.retain(|waiting| waiting.message_id != message_id),
                _ => {}
            }
        }
        let closing = state.writer.as_ref().is_some_and(|writer| writer.closing);
        let due = if closing { ConversationStatus::Closed } else { ConversationStatus::Idle };
        if let (false, false, Some(writer)) = (closing, left.is_empty(), &mut state.writer) {
            writer.sealed = false;
            // The first one is the next turn.
            state.queue = left.iter().skip(1).cloned().collect();
            drop(state);
            self.grew.notify_waiters();
            return Rest::Turn(left);
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

    /// Sends a command to the running turn. Gives it back when there is none.
    pub(crate) fn send(&self, control: Box<Control>) -> Result<Result<(), Error>, Box<Control>> {
        let mut state = self.state();
        let waiting = state.queue.len();
        let Some(writer) = &mut state.writer else { return Err(control) };
        // Whatever is on its way counts as a message.
        let on_their_way = writer.control.max_capacity() - writer.control.capacity();
        if matches!(control.input, Input::Steer(_)) && waiting + on_their_way >= MAX_QUEUE {
            return Ok(Err(Error::QueueFull { id: self.id.clone(), limit: MAX_QUEUE }));
        }
        Ok(writer.take(control).map_err(|()| Error::Busy { id: self.id.clone() }))
    }

    /// Tells streamed text at once; it becomes durable with the next commit.
    pub(crate) fn tell(&self, turn_id: &TurnId, bodies: impl Iterator<Item = EventBody>) {
        let mut state = self.state();
        for body in bodies {
            let frame = Frame::new(state.log.end(), &self.id, Some(turn_id), body);
            state.log.push(frame);
        }
        drop(state);
        self.grew.notify_waiters();
    }

    /// Shows what was made durable.
    pub(crate) fn publish(&self, batch: Batch, version: Version, turn: &Turn) {
        let mut state = self.state();
        state.version = version;
        state.head = batch.head;
        state.chunks.extend(batch.chunks);
        for frame in batch.frames {
            state.log.push(frame);
        }
        state.journaled = state.log.end();
        state.queue = turn.queue().to_vec();
        let sealed = turn.outcome().is_some();
        if let Some(writer) = &mut state.writer {
            writer.sealed = sealed;
            writer.turn = (!sealed).then(|| RunningTurn {
                from: batch.from,
                first_seq: batch.first_seq,
                retry: waiting(turn),
            });
        }
        let keep_from = if sealed { state.log.end() } else { batch.from };
        state.log.trim(keep_from);
        drop(state);
        self.grew.notify_waiters();
    }

    /// Shows what was made durable while no turn runs.
    pub(crate) fn publish_idle(&self, batch: Batch, version: Version) {
        let mut state = self.state();
        state.version = version;
        state.head = batch.head;
        for frame in batch.frames {
            state.log.push(frame);
        }
        state.journaled = state.log.end();
        drop(state);
        self.grew.notify_waiters();
    }

    /// Whether the running turn waits for a retry.
    pub(crate) fn is_waiting(&self) -> bool {
        self.state().running().is_some_and(|turn| turn.retry.is_some())
    }

    /// Shows events that are in no journal: the last resort when the journal fails.
    pub(crate) fn publish_unsaved(&self, frames: Vec<Frame>) {
        let mut state = self.state();
        for frame in frames {
            state.log.push(frame);
        }
        state.writer = None;
        state.gone = true;
        state.head.status = ConversationStatus::Idle;
        drop(state);
        self.grew.notify_waiters();
    }
}

impl State {
    /// The turn that runs or is parked.
    pub(crate) fn running(&self) -> Option<RunningTurn> {
        let parked = || {
            let TurnRecord { from, first_seq, wake_at, snapshot, .. } = self.unsealed.as_deref()?;
            let retry = wake_at.zip(snapshot.retry_attempt());
            let retry = retry.map(|(at, attempt)| RetryState { attempt, next_at: at.0 });
            Some(RunningTurn { from: *from, first_seq: *first_seq, retry })
        };
        self.writer.as_ref().and_then(|writer| writer.turn.clone()).or_else(parked)
    }

    fn take_place(&mut self, turn: Option<RunningTurn>) -> mpsc::Receiver<Box<Control>> {
        let (control, inbox) = mpsc::channel(CONTROL_PLACES);
        self.writer = Some(Writer { control, turn, closing: false, sealed: false });
        inbox
    }
}

impl Writer {
    fn take(&mut self, control: Box<Control>) -> Result<(), ()> {
        self.closing |= control.closes;
        self.control.try_send(control).map_err(drop)
    }
}

fn waiting(turn: &Turn) -> Option<RetryState> {
    let Want::Wake(_, at) = turn.want() else { return None };
    Some(RetryState { attempt: turn.retry_attempt()?, next_at: at.0 })
}
