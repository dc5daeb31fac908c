//! Saves the failed attempts of a turn with its metrics, as its events expire.

use everturn_kernel::Turn;
use everturn_wire::FailedAttempt;

use super::TurnHost;
use crate::{attempt::Attempts, conversation::Batch};

impl TurnHost<'_> {
    /// Collects the failed attempts of the turn that this batch seals. Most turns have none and read nothing.
    pub(super) async fn note_failed_attempts(&self, turn: &Turn, batch: &mut Batch) {
        let step = turn.steps().saturating_sub(1);
        let last = batch.ended_by.take().map(|last| FailedAttempt { step, ..last });
        let running = self.conversation.state().live.running.clone();
        let was_waiting = running.as_ref().is_some_and(|turn| turn.retry.is_some());
        let mut attempts = Attempts::default();
        let has_more = turn.retries() > 0 || turn.answer_calls() > turn.steps() || batch.ends_summary;
        if let Some(running) = running.filter(|_| was_waiting || has_more) {
            match Attempts::read(&*self.shared.journal, &self.conversation.id, running.from).await {
                Ok(read) => attempts = read,
                // Not fatal: the next append decides whether the turn can be saved.
                Err(error) => {
                    tracing::warn!(turn = %turn.id(), %error, "failed attempts could not be read");
                }
            }
        }
        batch.frames.iter().any(|frame| attempts.hear(&frame.event()));
        batch.failed_attempts = attempts.ended_by(last);
    }
}
