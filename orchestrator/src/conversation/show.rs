//! What those who watch a conversation see: streamed text at once, all else when it is durable.

use everturn_kernel::{Turn, Want};
use everturn_wire::{EventBody, RetryState, TurnId};

use super::{Batch, Conversation, RunningTurn};
use crate::{Frame, JournalError, Version};

impl Conversation {
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

    /// The journal failed. Those who watch are told that, and nothing else: what the journal does not have did not happen.
    pub(crate) fn lose(&self, why: JournalError) {
        let mut state = self.state();
        state.writer = None;
        state.lost = Some(why);
        drop(state);
        self.grew.notify_waiters();
    }
}

fn waiting(turn: &Turn) -> Option<RetryState> {
    let Want::Wake(_, at) = turn.want() else { return None };
    Some(RetryState { attempt: turn.retry_attempt()?, next_at: at.0 })
}
