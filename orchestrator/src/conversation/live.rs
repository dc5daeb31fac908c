//! The live view of a conversation: streamed text is shown at once, everything else once it is durable.

use std::sync::Arc;

use everturn_kernel::Turn;
use everturn_wire::{
    ApprovalRequest, Chunk, EventBody, QueuedMessage, RetryState, Role, StoredChunk, TurnId,
};

use super::{Batch, Conversation};
use crate::{
    Cursor, Frame, RequestScope, Version, cluster::Streamed, log::EventLog, observer::Observers,
    telemetry::Count,
};

/// The live view of a conversation.
pub(crate) struct Live {
    pub(crate) log: EventLog,
    /// The end of the journaled part of the event stream; only streamed text follows it.
    pub(crate) journaled: Cursor,
    /// The unsealed turn, from its first commit on, whether or not a session drives it.
    pub(crate) running: Option<RunningTurn>,
    /// The queued messages, as last committed.
    pub(crate) queue: Vec<QueuedMessage>,
    /// The size of the history, as last counted by a provider.
    pub(crate) measured: Option<Measured>,
}

/// The size of a history. Not persisted: after a restart it is estimated.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub(crate) tokens: u64,
    /// The `seq` of the last chunk counted.
    pub(crate) seq: u64,
}

/// The public view of the unsealed turn.
#[derive(Clone)]
pub(crate) struct RunningTurn {
    /// The start of its first event.
    pub(crate) from: Cursor,
    /// The `seq` of its first chunk.
    pub(crate) first_seq: u64,
    /// The retries of its current step.
    pub(crate) retry: Option<RetryState>,
    /// Whether *retry now* would do anything.
    pub(crate) takes_retry_now: bool,
    /// The calls that wait for a person.
    pub(crate) approvals: Box<[ApprovalRequest]>,
    /// What its request sets.
    pub(crate) scope: Option<Arc<RequestScope>>,
}

impl RunningTurn {
    pub(crate) fn new(turn: &Turn, from: Cursor, first_seq: u64, scope: Option<Arc<RequestScope>>) -> Self {
        Self {
            from,
            first_seq,
            scope,
            retry: turn.retry(),
            takes_retry_now: turn.takes_retry_now(),
            approvals: turn.approvals().collect(),
        }
    }
}

impl Live {
    /// Records the size of the history including these chunks. A summary resets it.
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
    /// Publishes streamed text at once; it becomes durable with the next commit.
    pub(crate) fn tell(&self, turn_id: &TurnId, bodies: impl Iterator<Item = EventBody>) {
        let (mut state, mut told, mut streamed) = (self.state(), Vec::new(), Vec::new());
        for body in bodies {
            if let (Some(_), Some(turn)) = (body.delta(), &mut state.live.running) {
                // Visible output ends the retries.
                (turn.retry, turn.takes_retry_now) = (None, false);
            }
            let frame = Frame::new(state.live.log.end(), &self.id, Some(turn_id), body);
            if self.home.observers.wants(&frame) {
                told.push(frame.clone());
            }
            if self.home.peers.is_some() {
                streamed.push(frame.to_stored());
            }
            state.live.log.push(frame);
        }
        let base = state.record.version;
        drop(state);
        if let Some(peers) = &self.home.peers {
            peers.cluster.live.stream(&self.id, Streamed { base, events: streamed });
        }
        self.home.observers.published(&told);
        self.grew.notify_waiters();
    }

    /// Publishes what was made durable. `next`: the turn that follows this one, which is sealed. Returns the number of
    /// pending commands that were meant for this turn.
    pub(crate) fn publish(&self, batch: Batch, version: Version, turn: &Turn, next: Option<&Turn>) -> usize {
        let told = self.to_observe(&batch);
        batch.ended_calls.iter().for_each(|call| self.questions.end(call));
        let mut state = self.state();
        state.live.measure(turn, &batch.chunks);
        // They were numbered after this record.
        let is_whole = state.record.grow(version, batch.head, batch.chunks);
        debug_assert!(is_whole, "a session's own append continues its record");
        let live = &mut state.live;
        live.push(batch.frames);
        let running = next.or_else(|| turn.outcome().is_none().then_some(turn));
        live.queue = running.unwrap_or(turn).queue().to_vec();
        live.running = running.map(|turn| RunningTurn::new(turn, batch.from, batch.first_seq, batch.scope));
        // Subscribers that are further behind read the journal, even for the running turn.
        live.log.trim();
        // Before the end of the turn is visible: a client that has seen it must not have a command sent to this turn.
        let on_their_way = self.seat.committed(running.is_none());
        drop(state);
        self.home.observers.published(&told);
        self.grew.notify_waiters();
        batch.counts.into_iter().for_each(Count::add);
        on_their_way
    }

    /// Returns the events of a batch for the observers, if there are any.
    fn to_observe(&self, batch: &Batch) -> Vec<Frame> {
        if self.home.observers.is_any() { batch.frames.clone() } else { Vec::new() }
    }

    /// Returns the observers of this conversation's provider calls.
    pub(crate) fn observers(&self) -> &Observers {
        &self.home.observers
    }

    /// Drops text that was published but never became durable. New events begin after it, so that a cursor into it
    /// leads to them, as after a crash.
    pub(crate) fn drop_told(&self) {
        let mut state = self.state();
        let end = state.live.log.end();
        (state.live.log, state.live.journaled) = (EventLog::new(end), end);
    }

    /// Publishes what was made durable while no turn runs.
    pub(crate) fn publish_idle(&self, batch: Batch, version: Version) {
        let told = self.to_observe(&batch);
        let mut state = self.state();
        let is_whole = state.record.grow(version, batch.head, batch.chunks);
        debug_assert!(is_whole, "an own append continues the record");
        state.live.push(batch.frames);
        drop(state);
        self.home.observers.published(&told);
        self.grew.notify_waiters();
    }
}
