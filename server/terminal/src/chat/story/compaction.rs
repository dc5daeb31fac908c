//! Shows how earlier messages are summarized for the model.

use everturn_wire::{CompactionCause, CompactionOutcome};

use super::*;

impl Story {
    /// The status until the model answers.
    pub(super) fn asking(&self) -> Status {
        if self.compaction.is_some() { Status::Summarizing } else { Status::Asking }
    }

    /// `message`: the provider's refusal, which has the figures.
    pub(super) fn compacting(
        &mut self,
        cause: CompactionCause,
        message: Option<&str>,
        view: &mut dyn View,
    ) -> io::Result<()> {
        self.compaction = Some(cause);
        self.on_step();
        let why = match cause {
            CompactionCause::Ahead => Some("is nearly"),
            CompactionCause::Requested => None,
            _ => Some("is"),
        };
        if let Some(message) = message {
            view.line(&Line::Failure(wording::brief(message)))?;
        }
        if let Some(why) = why {
            let note =
                format!("The conversation {why} too long for the model: summarizing earlier messages.");
            view.line(&Line::Note(note))?;
        }
        view.status(Status::Summarizing)
    }

    /// Shows the result of a compaction. One that ends the turn is covered by the turn's own ending.
    pub(super) fn compacted(
        &mut self,
        outcome: CompactionOutcome,
        message: Option<&str>,
        view: &mut dyn View,
    ) -> io::Result<()> {
        let cause = self.compaction.take();
        let note = match (outcome, cause) {
            (CompactionOutcome::Summarized, _) => {
                "Earlier messages were summarized for the model.".to_owned()
            }
            (CompactionOutcome::Failed, Some(CompactionCause::Ahead)) => {
                let why = message
                    .map(|why| format!(" ({})", wording::one_line(why, RATIONALE)))
                    .unwrap_or_default();
                format!("Earlier messages could not be summarized{why}. The model is sent all of them.")
            }
            _ => return Ok(()),
        };
        view.line(&Line::Note(note))?;
        view.status(Status::Asking)
    }
}
