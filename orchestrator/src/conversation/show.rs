//! What those who watch a conversation see: streamed text at once, all else when it is durable.

use everturn_kernel::Turn;
use everturn_wire::{EventBody, TurnId};

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

    /// Shows what was made durable. `next`: the turn that follows this one, which is sealed. Says how many commands are
    /// on their way, which were meant for this one.
    pub(crate) fn publish(&self, batch: Batch, version: Version, turn: &Turn, next: Option<&Turn>) -> usize {
        let mut state = self.state();
        state.version = version;
        state.head = batch.head;
        state.chunks.extend(batch.chunks);
        for frame in batch.frames {
            state.log.push(frame);
        }
        state.journaled = state.log.end();
        let running = next.or_else(|| turn.outcome().is_none().then_some(turn));
        state.queue = running.unwrap_or(turn).queue().to_vec();
        let mut on_their_way = 0;
        if let Some(writer) = &mut state.writer {
            on_their_way = writer.on_their_way();
            writer.sealed = running.is_none();
            writer.turn = running.map(|turn| RunningTurn {
                from: batch.from,
                first_seq: batch.first_seq,
                retry: turn.retry(),
                takes_retry_now: turn.takes_retry_now(),
            });
        }
        // Who is further behind reads the journal, also of the running turn.
        state.log.trim();
        drop(state);
        self.grew.notify_waiters();
        on_their_way
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
