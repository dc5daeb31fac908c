//! What a client displays.

use std::collections::{HashMap, HashSet};

use everturn_wire::{EventBody, StepId};

use super::{History, Violation};

/// The content of a client's screen, and the part of it that precedes the current step.
#[derive(Clone, Debug, Default)]
pub(super) struct Screen {
    shown: Shown,
    older: Shown,
    /// The calls without a result on the screen of a client without extensions, which takes nothing back.
    open: HashSet<(StepId, String)>,
}

#[derive(Clone, Debug, Default)]
struct Shown {
    text: String,
    thinking: String,
    /// The calls, and whether each has a result.
    calls: HashMap<(StepId, String), bool>,
}

impl Screen {
    pub(super) fn show(&mut self, event: &EventBody) -> Result<(), Violation> {
        match event {
            EventBody::TextDelta { delta } => {
                ensure!(!delta.is_empty(), "an empty text-delta");
                self.shown.text.push_str(delta);
            }
            EventBody::ReasoningDelta { delta } => {
                ensure!(!delta.is_empty(), "an empty reasoning-delta");
                self.shown.thinking.push_str(delta);
            }
            EventBody::ToolCall { step_id, tool_call_id, .. } => {
                let twice = self.shown.calls.insert((step_id.clone(), tool_call_id.clone()), false);
                ensure!(twice.is_none(), "a call is shown twice: {tool_call_id}");
            }
            EventBody::ToolOutput { tool_call_id, .. } => {
                let open = self.shown.calls.iter().any(|((_, id), answered)| id == tool_call_id && !answered);
                ensure!(open, "output of a call that does not run: {tool_call_id}");
            }
            EventBody::ToolResult { step_id, tool_call_id, .. } => {
                let call = (step_id.clone(), tool_call_id.clone());
                self.older.calls.entry(call.clone()).and_modify(|answered| *answered = true);
                let answered = self.shown.calls.insert(call, true);
                ensure!(answered == Some(false), "a second or unexpected result of a call: {tool_call_id}");
            }
            EventBody::StepComplete { .. } => self.older = self.shown.clone(),
            EventBody::StepRewound { .. } => self.shown = self.older.clone(),
            _ => {}
        }
        if event.is_extension() { Ok(()) } else { self.show_without_extensions(event) }
    }

    fn show_without_extensions(&mut self, event: &EventBody) -> Result<(), Violation> {
        match event {
            EventBody::ToolCall { step_id, tool_call_id, .. } => {
                let is_new = self.open.insert((step_id.clone(), tool_call_id.clone()));
                ensure!(
                    is_new,
                    "without extensions, a call is shown again before its result: {tool_call_id}"
                );
            }
            EventBody::ToolResult { step_id, tool_call_id, .. } => {
                let is_open = self.open.remove(&(step_id.clone(), tool_call_id.clone()));
                ensure!(is_open, "without extensions, a second result of a call is shown: {tool_call_id}");
            }
            _ => {}
        }
        Ok(())
    }

    /// Checks that at the end of the turn, the shown content is the kept content.
    pub(super) fn end(&self, history: &History) -> Result<(), Violation> {
        let Shown { text, thinking, calls } = &self.shown;
        let open: Vec<_> = calls.iter().filter(|(_, answered)| !**answered).map(|(call, _)| call).collect();
        ensure!(open.is_empty(), "calls were shown that never got a result: {open:?}");
        let unanswered = &self.open;
        ensure!(unanswered.is_empty(), "without extensions, calls never got a result: {unanswered:?}");
        ensure!(*text == history.text, "the text shown is {text:?}, the text kept is {:?}", history.text);
        let kept = &history.thinking;
        ensure!(thinking == kept, "the reasoning shown is {thinking:?}, the one kept is {kept:?}");
        Ok(())
    }
}
