//! What each event of a turn shows.

use std::{io, mem, time::Duration};

use everturn_wire::{Because, EventBody, TargetRole, Value};
use tokio::time::Instant;

use super::{ARGUMENTS, Chain, RESULT, Story};
use crate::{
    calendar::Calendar,
    chat::view::{Count, Line, Status, View, Wait},
    failure_summary::FailureSummary,
    wording,
};

/// Length from which a wait is shown with its end, too.
const LONG: Duration = Duration::from_secs(3600);

impl Story {
    pub(super) fn show(&mut self, body: EventBody, view: &mut dyn View) -> io::Result<()> {
        match body {
            EventBody::TextDelta { delta } => {
                self.on_content();
                view.text(&delta)
            }
            EventBody::ReasoningDelta { delta } => {
                self.on_content();
                view.reasoning(&delta)
            }
            EventBody::ToolCall { tool_call_id, tool_name, input, .. } => {
                self.on_content();
                self.calls.insert(tool_call_id, call(&tool_name, &input));
                view.status(Status::Tool(wording::one_line(&tool_name, ARGUMENTS)))
            }
            EventBody::ToolResult { tool_call_id, tool_name, content, is_error, .. } => {
                self.approvals.forget(&tool_call_id);
                self.questions.forget(&tool_call_id);
                let call = self.calls.remove(&tool_call_id).unwrap_or(tool_name);
                self.on_step();
                view.line(&Line::Tool { call, result: wording::one_line(&content, RESULT), is_error })?;
                view.status(Status::Asking)
            }
            EventBody::ProviderRetry {
                attempt,
                delay_ms,
                next_at,
                message,
                max_attempts,
                shared,
                because,
                ..
            } => {
                // The event may arrive late: wait only for the remaining time, and never longer than was decided.
                let delay = Duration::from_millis(delay_ms);
                let delay = next_at.map_or(delay, |at| self.clock.until(at).min(delay));
                let of_caller = because == Some(Because::CallerLimit);
                let long = next_at.filter(|_| delay >= LONG);
                let now = Instant::now();
                let wait = Wait {
                    count: Count { attempt, of: max_attempts, is_shared: shared == Some(true) },
                    until: now.checked_add(delay).unwrap_or(now),
                    ends: long.map(|at| Calendar::of_process().brief(self.clock.here(at))),
                    of_summary: self.compaction.is_some(),
                    of_caller,
                };
                self.retry(wait, &message, view)?;
                // Its message says which limit of the caller is used up.
                if because != mem::replace(&mut self.because, because)
                    && let Some(because) = because.filter(|_| !of_caller)
                {
                    view.line(&Line::Note(format!("It waits because {because}.")))?;
                }
                Ok(())
            }
            EventBody::ProviderSilent { silent_ms, gives_up_at, .. } => {
                self.silence(silent_ms, gives_up_at, view)
            }
            EventBody::TurnStart { message_seq, .. } => {
                self.message = message_seq;
                Ok(())
            }
            EventBody::StepComplete { .. } => {
                self.steps += 1;
                view.step_complete()
            }
            EventBody::RetryEnded { outcome, .. } => {
                self.chain = None;
                self.outcome = Some(outcome);
                Ok(())
            }
            EventBody::Error(report) => {
                self.failure_summary = FailureSummary::of(&report);
                self.error = report.message;
                Ok(())
            }
            EventBody::Steering { text } => {
                if self.queued.front().is_some_and(|queued| queued.text == text)
                    && let Some(unwanted) = self.queued.pop_front().filter(|queued| queued.is_unwanted)
                {
                    view.line(&unwanted.too_late())?;
                }
                view.line(&Line::Note(format!("> {}", wording::one_line(&text, RESULT))))
            }
            EventBody::StepRewound { reason, .. } => {
                self.on_step();
                let reason = wording::one_line(&reason, RESULT);
                view.line(&Line::Restart(format!("The answer broke off and starts again ({reason}).")))?;
                view.status(Status::Asking)
            }
            EventBody::TargetSwitched { to, role, reason, .. } => {
                let (to, reason) = (wording::one_line(&to, ARGUMENTS), wording::one_line(&reason, RESULT));
                let what = if role == TargetRole::Reviewer { "The review switched" } else { "Switched" };
                view.line(&Line::Note(format!("{what} to {to}: {reason}")))
            }
            EventBody::TargetRestored { to, .. } => {
                view.line(&Line::Note(format!("Back to {}", wording::one_line(&to, ARGUMENTS))))
            }
            body @ (EventBody::ApprovalRequested { .. }
            | EventBody::ApprovalResolved { .. }
            | EventBody::ReviewStarted { .. }
            | EventBody::ReviewCompleted { .. }) => self.permission(body, view),
            EventBody::QuestionAsked(question) => {
                self.questions.ask(*question);
                Ok(())
            }
            EventBody::QuestionSettled { question_id, outcome, .. } => {
                if let Some(told) = self.questions.settle(&question_id, outcome) {
                    view.line(&Line::Note(told))?;
                }
                view.status(Status::Asking)
            }
            body @ (EventBody::ReportMissing { .. }
            | EventBody::ReportForced { .. }
            | EventBody::FinalReport(_)) => self.on_report(body, view),
            EventBody::CompactionStarted { cause, message, .. } => {
                self.compacting(cause, message.as_deref(), view)
            }
            EventBody::CompactionCompleted { outcome, message, .. } => {
                self.compacted(outcome, message.as_deref(), view)
            }
            EventBody::Done { reason, duration_ms, .. } => {
                self.reason = Some(reason);
                self.took = duration_ms.map(Duration::from_millis);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn retry(&mut self, wait: Wait, message: &str, view: &mut dyn View) -> io::Result<()> {
        self.on_step();
        self.retries += u32::from(!wait.count.is_shared);
        self.step_retries = wait.count.attempt.saturating_add(1);
        let failure = wording::brief(message);
        // A repeated failure is shown only once.
        if failure != self.last_failure {
            view.line(&Line::Failure(failure.clone()))?;
            self.last_failure = failure;
        }
        self.chain = Some(Chain::Waiting(wait.clone()));
        view.status(Status::Retrying(wait))
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
