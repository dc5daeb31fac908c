//! The history sent to providers.

use everturn_wire::{Chunk, Role, StepId};

use super::Violation;

#[derive(Clone, Debug, Default)]
pub(super) struct History {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) errors: u32,
    /// Calls of the last message without a result.
    open: Vec<(StepId, String)>,
    answered: Vec<(StepId, String)>,
    prompted: bool,
}

impl History {
    /// Accepts an earlier history that ends with a prompt.
    pub(super) fn goes_on(&mut self) {
        self.prompted = true;
    }

    /// Returns the calls without a result as an error.
    pub(super) fn is_complete(&self) -> Result<(), String> {
        let open = &self.open;
        if open.is_empty() { Ok(()) } else { Err(format!("unanswered tool calls: {open:?}")) }
    }

    pub(super) fn keep(&mut self, role: Role, chunk: &Chunk) -> Result<(), Violation> {
        match chunk {
            Chunk::ToolCall { tool_call_id, step_id, .. } => {
                ensure!(role == Role::Assistant, "a call of {role:?}");
                let call = named(step_id.as_ref(), tool_call_id)?;
                let known = self.open.contains(&call) || self.answered.contains(&call);
                ensure!(!known, "a call is kept twice: {call:?}");
                self.open.push(call);
            }
            Chunk::ToolResult { tool_call_id, step_id, .. } => {
                ensure!(role == Role::Tool, "a result of {role:?}");
                let call = named(step_id.as_ref(), tool_call_id)?;
                let at = self.open.iter().position(|open| *open == call);
                let Some(at) = at else {
                    return Err(Violation::new(format!("a result without its call: {call:?}")));
                };
                self.open.swap_remove(at);
                self.answered.push(call);
            }
            _ => self.keep_plain(role, chunk)?,
        }
        Ok(())
    }

    fn keep_plain(&mut self, role: Role, chunk: &Chunk) -> Result<(), Violation> {
        ensure!(self.open.is_empty(), "a call without its result before {chunk:?}");
        match (role, chunk) {
            (Role::Assistant, Chunk::Text { text }) => {
                ensure!(!text.is_empty(), "an empty text is kept");
                self.text.push_str(text);
            }
            (Role::Assistant, Chunk::Thinking { text, echo }) => {
                ensure!(!text.is_empty() || echo.is_some(), "an empty thought is kept");
                self.thinking.push_str(text);
            }
            (Role::User, Chunk::Text { text }) => {
                ensure!(!text.is_empty(), "an empty message is kept");
                ensure!(!text.starts_with("TURN-FAILED"), "guidance saved as the user's text: {text}");
                self.prompted = true;
            }
            (Role::User, Chunk::Image { .. }) => self.prompted = true,
            (Role::System, Chunk::System { text, keeps_from }) => {
                let is_guidance = text.starts_with("TURN-FAILED: ");
                ensure!(!text.trim().is_empty(), "an empty summary is kept");
                ensure!(keeps_from.is_some() != is_guidance, "neither summary nor guidance: {text}");
            }
            (Role::Assistant, Chunk::Error { .. }) => self.errors += 1,
            other => return Err(Violation::new(format!("not expected in history: {other:?}"))),
        }
        ensure!(self.prompted, "something is kept before the prompt: {chunk:?}");
        Ok(())
    }
}

fn named(step_id: Option<&StepId>, call_id: &str) -> Result<(StepId, String), Violation> {
    let Some(step_id) = step_id else {
        return Err(Violation::new(format!("{call_id} does not name its step")));
    };
    Ok((step_id.clone(), call_id.to_owned()))
}
