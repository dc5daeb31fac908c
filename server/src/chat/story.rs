//! One turn, as its events tell it.

use std::{collections::HashMap, io, time::Duration};

use everturn_wire::{AgentEvent, DoneReason, EventBody, RetryOutcome, TurnId, Value};
use tokio::time::Instant;

use super::view::{Line, Status, View, Wait};
use crate::{aftermath::Aftermath, wording};

/// The most characters that are shown of a tool's arguments, and of its result.
const ARGUMENTS: usize = 60;
const RESULT: usize = 80;

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Answered,
    Failed,
    /// The server did not take the message, or lost the conversation.
    Refused,
    /// A person ended the wait, or someone ended the turn.
    Cancelled,
    /// The person at this terminal ended the turn.
    Interrupted,
}

/// What was told of one turn so far.
#[derive(Default)]
pub(super) struct Story {
    /// The message that began it: there may be other turns in the conversation.
    message: String,
    id: Option<TurnId>,
    wait: Option<Wait>,
    retries: u32,
    last_failure: String,
    /// How the latest series of retries ended.
    outcome: Option<RetryOutcome>,
    /// The running tools, by their calls.
    calls: HashMap<String, String>,
    error: String,
    aftermath: Aftermath,
    reason: Option<DoneReason>,
    took: Option<Duration>,
    /// The person at this terminal ended the turn.
    pub(super) interrupted: bool,
}

impl Story {
    pub(super) fn of(message: String) -> Self {
        Self { message, ..Self::default() }
    }

    /// Takes the next event in, and shows it. Says how the turn ended once it has.
    pub(super) fn take(&mut self, event: AgentEvent, view: &mut dyn View) -> io::Result<Option<Ending>> {
        if let (None, EventBody::UserMessage { text }) = (&self.id, &event.body)
            && *text == self.message
        {
            self.id = event.turn_id;
            view.status(Status::Asking)?;
            return Ok(None);
        }
        if self.id.is_none() || event.turn_id != self.id {
            return Ok(None);
        }
        match event.body {
            EventBody::TurnSealed => return self.end(view).map(Some),
            body => self.show(body, view)?,
        }
        Ok(None)
    }

    /// Whether a wait goes on that can be ended or skipped.
    pub(super) fn is_waiting(&self) -> bool {
        self.wait.as_ref().is_some_and(|wait| wait.until > Instant::now())
    }

    /// The wait was skipped.
    pub(super) fn skip_wait(&mut self, view: &mut dyn View) -> io::Result<()> {
        let skipped = self.wait.take().map(|wait| Wait { until: Instant::now(), ..wait });
        skipped.map_or(Ok(()), |wait| view.status(Status::Retrying(wait)))
    }

    /// The connection is back: says again what is going on.
    pub(super) fn resume(&self, view: &mut dyn View) -> io::Result<()> {
        view.status(self.wait.clone().map_or(Status::Asking, Status::Retrying))
    }

    fn show(&mut self, body: EventBody, view: &mut dyn View) -> io::Result<()> {
        match body {
            EventBody::TextDelta { delta } => {
                self.wait = None;
                view.text(&delta)
            }
            EventBody::ReasoningDelta { delta } => {
                self.wait = None;
                view.reasoning(&delta)
            }
            EventBody::ToolCall { tool_call_id, tool_name, input, .. } => {
                self.calls.insert(tool_call_id, call(&tool_name, &input));
                view.status(Status::Tool(wording::one_line(&tool_name, ARGUMENTS)))
            }
            EventBody::ToolResult { tool_call_id, tool_name, content, is_error, .. } => {
                let call = self.calls.remove(&tool_call_id).unwrap_or(tool_name);
                view.line(&Line::Tool { call, result: wording::one_line(&content, RESULT), is_error })?;
                view.status(Status::Asking)
            }
            EventBody::ProviderRetry { attempt, delay_ms, message, max_attempts, .. } => {
                self.retry(attempt, Duration::from_millis(delay_ms), &message, max_attempts, view)
            }
            EventBody::RetryEnded { outcome, .. } => {
                self.wait = None;
                self.outcome = Some(outcome);
                Ok(())
            }
            EventBody::Error(report) => {
                self.aftermath = Aftermath::of(&report);
                self.error = report.message;
                Ok(())
            }
            EventBody::Steering { text } => {
                view.line(&Line::Note(format!("> {}", wording::one_line(&text, RESULT))))
            }
            EventBody::StepRewound { reason, .. } => {
                let reason = wording::one_line(&reason, RESULT);
                view.line(&Line::Note(format!("The answer broke off and starts again ({reason}).")))?;
                view.status(Status::Asking)
            }
            EventBody::Done { reason, duration_ms, .. } => {
                self.reason = Some(reason);
                self.took = duration_ms.map(Duration::from_millis);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn retry(
        &mut self,
        attempt: u32,
        delay: Duration,
        message: &str,
        of: Option<u32>,
        view: &mut dyn View,
    ) -> io::Result<()> {
        self.retries += 1;
        let failure = wording::brief(message);
        // The same failure again and again is said once.
        if failure != self.last_failure {
            view.line(&Line::Failure(failure.clone()))?;
            self.last_failure = failure;
        }
        let now = Instant::now();
        let wait = Wait { attempt, of, until: now.checked_add(delay).unwrap_or(now) };
        self.wait = Some(wait.clone());
        view.status(Status::Retrying(wait))
    }

    fn end(&mut self, view: &mut dyn View) -> io::Result<Ending> {
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
        let first = match self.retries {
            1 if gave_up => format!("Retry failed after 1 attempt: {error}"),
            1.. if gave_up => format!("Retry failed after {} attempts: {error}", self.retries),
            _ => error,
        };
        let lines = [first].into_iter().chain(self.aftermath.tried()).chain(self.aftermath.next());
        lines.collect::<Vec<_>>().join("\n")
    }

    /// What there is to say about an answer.
    fn remark(&self, reason: Option<&DoneReason>) -> Option<String> {
        match reason {
            Some(DoneReason::Length) => Some("Cut off: the model reached its longest answer.".to_owned()),
            Some(DoneReason::ContentFilter) => {
                Some("Cut off by the content filter of the provider.".to_owned())
            }
            Some(DoneReason::MaxSteps) => Some("Ended: this turn had all the steps it may have.".to_owned()),
            Some(DoneReason::Other(word)) => Some(format!("Ended: {}", wording::one_line(word, RESULT))),
            _ if self.retries > 0 => {
                let retries =
                    if self.retries == 1 { "1 retry" } else { &format!("{} retries", self.retries) };
                let took = self.took.map_or_else(String::new, |took| format!(", in {}", wording::time(took)));
                Some(format!("Answered after {retries}{took}."))
            }
            _ => None,
        }
    }
}

/// `name {"argument":1}`
fn call(name: &str, input: &Value) -> String {
    let arguments = if input.as_object().is_some_and(serde_json::Map::is_empty) {
        String::new()
    } else {
        input.to_string()
    };
    wording::one_line(&format!("{name} {arguments}"), ARGUMENTS)
}

#[cfg(test)]
mod tests;
