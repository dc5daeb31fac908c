//! Shows the final report of a turn, and events that lead to it.

use std::io;

use everturn_wire::{EventBody, ForcedBy};

use super::{RATIONALE, Story};
use crate::{
    chat::view::{Line, View},
    wording,
};

impl Story {
    pub(super) fn on_report(&mut self, body: EventBody, view: &mut dyn View) -> io::Result<()> {
        match body {
            EventBody::ReportMissing { reason, attempt, max_attempts, .. } => {
                self.on_step();
                let reason = wording::one_line(&reason, RATIONALE);
                view.line(&Line::Note(format!("No report yet ({attempt}/{max_attempts}): {reason}")))
            }
            EventBody::ReportForced { by, .. } => {
                let why = match by {
                    ForcedBy::MaxSteps => "this is the last step",
                    ForcedBy::Overflow => "the history is too long for the model",
                    ForcedBy::Exhausted => "retries are used up",
                    _ => "the turn is about to end",
                };
                view.line(&Line::Note(format!("Asked for the report alone: {why}.")))
            }
            EventBody::FinalReport(report) => {
                match &report.report {
                    Some(value) => {
                        view.line(&Line::Note("Final report".to_owned()))?;
                        // The report is the answer of such a turn.
                        view.text(&format!("{value:#}\n"))?;
                    }
                    None => {
                        let reason = report.reason.as_deref().unwrap_or("no reason was given");
                        view.line(&Line::Note(format!(
                            "No report: {}",
                            wording::one_line(reason, RATIONALE)
                        )))?;
                    }
                }
                self.report = Some(report);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}
