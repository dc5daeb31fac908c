//! Leaving `Tools`: every call has its result.

use core::mem;

use everturn_wire::{Chunk, DoneReason, EventBody, Role, StepId};

use super::Turn;
use crate::{
    Effects, Millis, Op, ToolAnswer,
    call::{CallState, OpenCall, promote},
    phase::{Phase, Streaming, Tally},
};

impl Turn {
    pub(super) fn on_tool_done(
        &mut self,
        now: Millis,
        step: u32,
        call_id: &str,
        answer: ToolAnswer,
        fx: &mut Effects,
    ) {
        let (current, calls, stream_ended) = match &mut self.phase {
            Phase::Streaming(streaming) => (streaming.op.step, &mut streaming.calls, false),
            Phase::Tools(tools) => (tools.step, &mut tools.calls, true),
            Phase::Backoff(_) | Phase::Sealed(_) => return,
        };
        let Some(open) = calls.iter_mut().find(|open| open.call.id == call_id) else { return };
        let CallState::Running { since } = open.state else { return };
        if current != step {
            return;
        }
        let step_id = StepId::new(&self.id, step);
        fx.tell(open.result_event(&step_id, &answer, Some(now.since(since))));
        if stream_ended {
            fx.keep(Role::Tool, open.result_chunk(&step_id, &answer));
        }
        open.state = CallState::Done(answer);
        self.revision += 1;
        self.advance_tools(now, fx);
    }

    /// Runs right after the step's stream ended: answers calls that cannot be run and lets the others start.
    pub(super) fn start_tools(&mut self, now: Millis, fx: &mut Effects) {
        self.answer_where(now, OpenCall::refusal, fx);
        self.advance_tools(now, fx);
    }

    /// Answers every call without a result.
    pub(super) fn answer_all(&mut self, now: Millis, answer: &ToolAnswer, fx: &mut Effects) {
        self.answer_where(now, |_| Some(answer.clone()), fx);
    }

    /// Answers calls without a result that need not run.
    pub(super) fn answer_where(
        &mut self,
        now: Millis,
        answer: impl Fn(&OpenCall) -> Option<ToolAnswer>,
        fx: &mut Effects,
    ) {
        let Phase::Tools(tools) = &mut self.phase else { return };
        let step_id = StepId::new(&self.id, tools.step);
        for open in tools.calls.iter_mut().filter(|open| open.answer().is_none()) {
            let Some(answer) = answer(open) else { continue };
            let ran_ms = match open.state {
                CallState::Running { since } => Some(now.since(since)),
                CallState::Pending | CallState::Done(_) => None,
            };
            fx.tell(open.result_event(&step_id, &answer, ran_ms));
            fx.keep(Role::Tool, open.result_chunk(&step_id, &answer));
            open.state = CallState::Done(answer);
        }
        self.revision += 1;
    }

    /// Lets further calls run; starts the next step once all have a result.
    pub(super) fn advance_tools(&mut self, now: Millis, fx: &mut Effects) {
        let places = self.settings.max_parallel_tools;
        match &mut self.phase {
            Phase::Streaming(streaming) => promote(&mut streaming.calls, places, now),
            Phase::Tools(tools) => {
                promote(&mut tools.calls, places, now);
                if tools.calls.iter().all(|open| open.answer().is_some()) {
                    let step = tools.step.saturating_add(1);
                    self.next_step(now, step, fx);
                }
            }
            Phase::Backoff(_) | Phase::Sealed(_) => {}
        }
    }

    fn next_step(&mut self, now: Millis, step: u32, fx: &mut Effects) {
        if self.settings.max_steps.is_some_and(|max| step >= max.max(1)) {
            return self.seal(now, DoneReason::MaxSteps, None, fx);
        }
        let steering = mem::take(&mut self.queue);
        if !steering.is_empty() {
            self.queue_changed(fx);
        }
        for message in steering {
            fx.keep(Role::User, Chunk::Text { text: message.text.clone() });
            fx.tell(EventBody::Steering { text: message.text });
        }
        self.recoveries = 0;
        self.enter(Phase::Streaming(Streaming::new(Op { step, attempt: 0 }, Tally::default(), now)));
    }
}
