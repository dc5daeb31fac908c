//! Decisions of people and reviewers about tool calls.

use super::*;

/// Maximum length of a displayed rating by a reviewer, in characters.
const RATING: usize = 20;

impl Story {
    pub(super) fn permission(&mut self, body: EventBody, view: &mut dyn View) -> io::Result<()> {
        match body {
            EventBody::ApprovalRequested { step_id, tool_call_id, tool_name, input, reason, until } => {
                let call = (step_id, tool_call_id);
                let request = Request::new(call, &tool_name, &input, reason.as_deref(), until, &self.clock);
                self.approvals.ask(request);
                Ok(())
            }
            EventBody::ApprovalResolved { step_id, tool_call_id, verdict, reason, name, via, .. } => {
                let who = decision::who(name.as_deref(), via.as_deref());
                let resolved =
                    self.approvals.resolve((&step_id, &tool_call_id), verdict, &who, reason.as_deref());
                let Some((tool, told)) = resolved else { return Ok(()) };
                view.line(&Line::Note(told))?;
                let runs = verdict == Verdict::Allowed;
                view.status(if runs { Status::Tool(tool) } else { Status::Asking })
            }
            EventBody::ReviewStarted { tool_call_id, tool_name, .. } => {
                let tool = wording::one_line(&tool_name, ARGUMENTS);
                self.reviews.insert(tool_call_id, tool.clone());
                view.status(Status::Reviewing(tool))
            }
            EventBody::ReviewCompleted { tool_call_id, verdict, risk_level, rationale, .. } => {
                let tool = self.reviews.remove(&tool_call_id).unwrap_or_else(|| "A call".to_owned());
                let risk = risk_level.map(|risk| format!(" ({} risk)", wording::one_line(&risk, RATING)));
                let why = rationale.map(|why| format!(": {}", wording::one_line(&why, RATIONALE)));
                let what = match verdict {
                    Verdict::Allowed => "allowed by review",
                    Verdict::Denied => "denied by review",
                    Verdict::TimedOut => "was not reviewed in time",
                    Verdict::Cancelled => "was not reviewed: the turn ended",
                    _ => "could not be reviewed",
                };
                let (risk, why) = (risk.unwrap_or_default(), why.unwrap_or_default());
                view.line(&Line::Note(format!("{tool} {what}{risk}{why}")))?;
                view.status(Status::Asking)
            }
            _ => Ok(()),
        }
    }

    /// Records the person's answer to the call that is shown. Returns the command to send; `None` if no call waits.
    pub(in super::super) fn answer(
        &mut self,
        choice: Choice,
        conversation_id: ConversationId,
        view: &mut dyn View,
    ) -> io::Result<Option<Command>> {
        let (Some(turn_id), Some(request)) = (self.id.clone(), self.approvals.answer(choice.clone())) else {
            return Ok(None);
        };
        let command = Command::ApprovalAnswer {
            conversation_id,
            turn_id,
            step_id: request.step_id.clone(),
            tool_call_id: request.tool_call_id.clone(),
            verdict: choice.verdict(),
            scope: choice.scope(),
            reason: choice.reason(),
            name: None,
            via: Some("terminal".to_owned()),
        };
        view.status(Status::Asking)?;
        self.approvals.show(view)?;
        Ok(Some(command))
    }
}
