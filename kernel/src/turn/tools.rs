//! Leaving `Tools`: every call has its result.

use core::mem;

use everturn_wire::{Chunk, DoneReason, EventBody, Role, StepId};

use super::Turn;
use crate::{
    Effects, Ledger, Millis, Op, Schedule, ToolAnswer,
    call::{CallState, OpenCall, promote},
    check::HANDED_OVER,
    phase::Phase,
};

impl Turn {
    pub(super) fn on_tool_done(
        &mut self,
        now: Millis,
        step: u32,
        call_id: &str,
        answer: ToolAnswer,
        schedule: &dyn Schedule,
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
        self.advance_tools(now, schedule, fx);
    }

    /// Handles the end of the step's stream: answers calls that cannot run, and starts the others.
    pub(super) fn start_tools(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        self.answer_where(now, OpenCall::prompt_answer, fx);
        self.advance_tools(now, schedule, fx);
    }

    /// Answers every call without a result.
    pub(super) fn answer_all(&mut self, now: Millis, answer: &ToolAnswer, fx: &mut Effects) {
        self.answer_where(now, |_| Some(answer.clone()), fx);
    }

    /// Answers the calls without a result that need not run.
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
            if let Some(cancelled) = open.check_cancelled(&step_id, now) {
                fx.tell(cancelled);
            }
            let ran_ms = match open.state {
                CallState::Running { since } => Some(now.since(since)),
                _ => None,
            };
            fx.tell(open.result_event(&step_id, &answer, ran_ms));
            fx.keep(Role::Tool, open.result_chunk(&step_id, &answer));
            (open.check, open.state) = (None, CallState::Done(answer));
        }
        self.revision += 1;
    }

    /// Gives a result to a call that does not run after its check.
    pub(super) fn answer_call(&mut self, now: Millis, call_id: &str, answer: &ToolAnswer, fx: &mut Effects) {
        let answer = |open: &OpenCall| (open.call.id == call_id).then(|| answer.clone());
        if let Phase::Tools(tools) = &mut self.phase
            && let Some(open) = tools.calls.iter_mut().find(|open| open.call.id == call_id)
        {
            // The verdict already announced the end of the check.
            open.state = CallState::Pending;
        }
        self.answer_where(now, answer, fx);
    }

    /// Starts further calls. Once all have results, begins the next step.
    pub(super) fn advance_tools(&mut self, now: Millis, schedule: &dyn Schedule, fx: &mut Effects) {
        let places = self.settings.max_parallel_tools;
        self.begin_checks(now, fx);
        match &mut self.phase {
            Phase::Streaming(streaming) => promote(&mut streaming.calls, places, now),
            Phase::Tools(tools) => {
                promote(&mut tools.calls, places, now);
                let mut left = tools.calls.iter().filter(|open| open.answer().is_none()).peekable();
                if left.peek().is_none() {
                    let step = tools.step.saturating_add(1);
                    match self.must_report() {
                        true => self.on_results(now, schedule, fx),
                        false => self.next_step(now, step, schedule, fx),
                    }
                } else if left.all(OpenCall::is_of_caller) {
                    self.hand_over(now, fx);
                }
            }
            Phase::Backoff(_) | Phase::Sealed(_) => {}
        }
    }

    /// Ends the turn with the calls for the caller. Each has a placeholder result in the history until the real one
    /// comes.
    fn hand_over(&mut self, now: Millis, fx: &mut Effects) {
        let Phase::Tools(tools) = &mut self.phase else { return };
        let step_id = StepId::new(&self.id, tools.step);
        for open in tools.calls.iter_mut().filter(|open| open.answer().is_none()) {
            let answer = ToolAnswer::ok(HANDED_OVER);
            fx.tell(open.result_event(&step_id, &answer, None));
            fx.keep(Role::Tool, open.result_chunk(&step_id, &answer));
            open.state = CallState::Done(answer);
        }
        self.seal(now, DoneReason::ToolCalls, None, fx);
    }

    /// Begins a step.
    pub(super) fn next_step(&mut self, now: Millis, step: u32, schedule: &dyn Schedule, fx: &mut Effects) {
        if !self.must_report() && self.settings.max_steps.is_some_and(|max| step >= max.max(1)) {
            return self.seal(now, DoneReason::MaxSteps, None, fx);
        }
        if let Some(reporting) = &mut self.reporting {
            reporting.failed_in_step = 0;
        }
        let mut ledger = Ledger::knowing(self.target, self.hinted(now));
        if self.is_last_step(step) {
            ledger.budget = self.budget_of_report(now, &ledger);
        }
        self.begin_calls(now, step, ledger, schedule, fx);
    }

    /// Begins the calls that follow the last ones: injects what was queued meanwhile, and chooses a target.
    pub(super) fn begin_calls(
        &mut self,
        now: Millis,
        step: u32,
        ledger: Ledger,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        self.inject_queue(fx);
        // A person's choice is not reset to the first target.
        if !self.is_chosen {
            self.choose_first(now, &ledger, schedule, fx);
        }
        self.ask(now, Op { step, attempt: 0 }, ledger);
        self.tell_last_step(step, fx);
    }

    /// Injects the queued messages. What follows has not been recovered yet.
    pub(super) fn inject_queue(&mut self, fx: &mut Effects) {
        self.recoveries = 0;
        let steering = mem::take(&mut self.queue);
        if !steering.is_empty() {
            self.queue_changed(fx);
        }
        for message in steering {
            fx.keep(Role::User, Chunk::Text { text: message.text.clone() });
            fx.tell(EventBody::Steering { text: message.text });
        }
    }
}
