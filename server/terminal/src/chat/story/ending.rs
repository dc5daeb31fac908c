//! Describes how a turn ended.

use std::io;

use everturn_wire::{DoneReason, RetryOutcome};

use super::{RESULT, Story};
use crate::{
    chat::view::{Line, View},
    wording,
};

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::chat) enum Ending {
    Answered,
    Failed,
    /// The server rejected the message, or lost the conversation.
    Refused,
    /// A person ended the wait, or somebody ended the turn.
    Cancelled,
    /// The person at this terminal ended the turn.
    Interrupted,
    /// The person at this terminal left; the turn keeps running.
    Left,
}

impl Story {
    /// Shows how the turn ended.
    pub(super) fn end(&mut self, view: &mut dyn View) -> io::Result<Ending> {
        view.end()?;
        let note = |text: &str| Line::Note(text.to_owned());
        let (line, ending) = match self.reason.take() {
            Some(DoneReason::Error) => (Some(Line::Error(self.failed())), Ending::Failed),
            Some(DoneReason::Aborted) if self.interrupted => (Some(note("Stopped.")), Ending::Interrupted),
            Some(DoneReason::Aborted) if self.outcome == Some(RetryOutcome::Cancelled) => {
                (Some(note("Retry cancelled.")), Ending::Cancelled)
            }
            Some(DoneReason::Aborted) => (Some(note("Stopped.")), Ending::Cancelled),
            reason => (self.remark(reason.as_ref()).map(Line::Note), Ending::Answered),
        };
        if let Some(line) = line {
            view.line(&line)?;
        }
        Ok(ending)
    }

    fn failed(&self) -> String {
        let error = wording::brief(&self.error);
        let gave_up = matches!(self.outcome, Some(RetryOutcome::Exhausted | RetryOutcome::TooLong));
        // Only for the failed step, as the steps before it recovered.
        let retries = self.failure_summary.retries().unwrap_or(self.step_retries);
        let first = match retries {
            1.. if gave_up => {
                format!("Retry failed after {}: {error}", wording::count(retries.into(), "attempt"))
            }
            _ => error,
        };
        let lines =
            [first].into_iter().chain(self.failure_summary.tried()).chain(self.failure_summary.next());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// A remark about the answer, if one is needed.
    fn remark(&self, reason: Option<&DoneReason>) -> Option<String> {
        match reason {
            Some(DoneReason::Length) => {
                Some("Cut off: the answer reached the model's length limit.".to_owned())
            }
            Some(DoneReason::ContentFilter) => Some("Cut off by the provider's content filter.".to_owned()),
            Some(DoneReason::MaxSteps) => Some(format!(
                "Stopped after {}, the most that the server allows a turn (`max_steps` in its configuration). Send a \
                 message to continue.",
                wording::count(self.steps, "step")
            )),
            Some(DoneReason::Other(word)) => Some(format!("Ended: {}", wording::one_line(word, RESULT))),
            _ if self.retries > 0 => {
                let retries = wording::retries(self.retries);
                let took = self.took.map_or_else(String::new, |took| format!(", in {}", wording::time(took)));
                Some(format!("Answered after {retries}{took}."))
            }
            _ => None,
        }
    }
}
