//! What those who watch a conversation see: streamed text at once, all else when it is durable.

use std::sync::Arc;

use everturn_kernel::Turn;
use everturn_wire::{
    ApprovalRequest, Chunk, EventBody, QueuedMessage, RetryState, Role, StoredChunk, TurnId,
};

use super::{Batch, Conversation};
use crate::{Cursor, Frame, Version, log::EventLog, observer::Observers, telemetry::Count};

/// What those who watch a conversation see.
pub(crate) struct Live {
    pub(crate) log: EventLog,
    /// Up to where the event stream is in the journal; beyond is streamed text.
    pub(crate) journaled: Cursor,
    /// The unsealed turn, from its first commit on, whether someone drives it or not.
    pub(crate) running: Option<RunningTurn>,
    /// The messages that wait, as last committed.
    pub(crate) queue: Vec<QueuedMessage>,
    /// How large the history is, as a provider counted it last.
    pub(crate) measured: Option<Measured>,
}

/// How large a history is. Forgotten with the process: then it is estimated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) tokens: u64,
    /// The `seq` of the last chunk that is counted.
    pub(crate) seq: u64,
}

/// The unsealed turn, as others see it.
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
    /// The calls that wait for a person.
    pub(crate) approvals: Box<[ApprovalRequest]>,
}

impl RunningTurn {
    pub(crate) fn new(turn: &Turn, from: Cursor, first_seq: u64) -> Self {
        Self {
            from,
            first_seq,
            retry: turn.retry(),
            takes_retry_now: turn.takes_retry_now(),
            approvals: turn.approvals().collect(),
        }
    }
}

impl Live {
    /// Notes how large the history is after these chunks. A summary makes it another one.
    fn measure(&mut self, turn: &Turn, chunks: &[Arc<StoredChunk>]) {
        if chunks.iter().any(|stored| matches!(&*stored.chunk, Chunk::System { keeps_from: Some(_), .. })) {
            self.measured = None;
        }
        let said = chunks.iter().rfind(|stored| stored.role == Role::Assistant);
        if let (Some(last), Some(tokens)) = (said, turn.context_size()) {
            self.measured = Some(Measured { tokens, seq: last.seq });
        }
    }

    fn push(&mut self, frames: Vec<Frame>) {
        for frame in frames {
            self.log.push(frame);
        }
        self.journaled = self.log.end();
    }
}

impl Conversation {
    /// Tells streamed text at once; it becomes durable with the next commit.
    pub(crate) fn tell(&self, turn_id: &TurnId, bodies: impl Iterator<Item = EventBody>) {
        let (mut state, mut told) = (self.state(), Vec::new());
        for body in bodies {
            if let (Some(_), Some(turn)) = (body.delta(), &mut state.live.running) {
                // What is shown ends the chain of retries.
                (turn.retry, turn.takes_retry_now) = (None, false);
            }
            let frame = Frame::new(state.live.log.end(), &self.id, Some(turn_id), body);
            if self.home.observers.wants(&frame) {
                told.push(frame.clone());
            }
            state.live.log.push(frame);
        }
        drop(state);
        self.home.observers.published(&told);
        self.grew.notify_waiters();
    }

    /// Shows what was made durable. `next`: the turn that follows this one, which is sealed. Says how many commands are
    /// on their way, which were meant for this one.
    pub(crate) fn publish(&self, batch: Batch, version: Version, turn: &Turn, next: Option<&Turn>) -> usize {
        let told = self.to_observe(&batch);
        let mut state = self.state();
        state.live.measure(turn, &batch.chunks);
        state.record.grow(version, batch.head, batch.chunks);
        let live = &mut state.live;
        live.push(batch.frames);
        let running = next.or_else(|| turn.outcome().is_none().then_some(turn));
        live.queue = running.unwrap_or(turn).queue().to_vec();
        live.running = running.map(|turn| RunningTurn::new(turn, batch.from, batch.first_seq));
        // Who is further behind reads the journal, also of the running turn.
        live.log.trim();
        // Before anyone can see it: who has seen the end of a turn must not have a command sent to it.
        let on_their_way = self.seat.committed(running.is_none());
        drop(state);
        self.home.observers.published(&told);
        self.grew.notify_waiters();
        batch.counts.into_iter().for_each(Count::add);
        on_their_way
    }

    /// The events of a batch, if anyone observes them.
    fn to_observe(&self, batch: &Batch) -> Vec<Frame> {
        if self.home.observers.is_any() { batch.frames.clone() } else { Vec::new() }
    }

    /// Who is told of the provider calls of this conversation.
    pub(crate) fn observers(&self) -> &Observers {
        &self.home.observers
    }

    /// Drops what was told and never became durable: new events begin behind it, so that a cursor into it leads on to
    /// them, as after a crash.
    pub(crate) fn drop_told(&self) {
        let mut state = self.state();
        let end = state.live.log.end();
        (state.live.log, state.live.journaled) = (EventLog::new(end), end);
    }

    /// Shows what was made durable while no turn runs.
    pub(crate) fn publish_idle(&self, batch: Batch, version: Version) {
        let told = self.to_observe(&batch);
        let mut state = self.state();
        state.record.grow(version, batch.head, batch.chunks);
        state.live.push(batch.frames);
        drop(state);
        self.home.observers.published(&told);
        self.grew.notify_waiters();
    }
}
