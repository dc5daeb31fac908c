//! Checks of tool calls: people and reviewers decide whether a call runs.

use alloc::{boxed::Box, format, string::String};

use everturn_wire::{
    ApprovalRequest, Category, Decider, Decision, EventBody, Failure, RetryOutcome, StepId, TargetRole,
    Verdict,
};

use super::Turn;
use crate::{
    Answer, Approval, Assessment, Check, Effects, Millis, Moment, ReviewAnswer, ReviewAttempt,
    ReviewerSwitch, Schedule, ToolAnswer, ToolCall, Wait,
    call::{CallState, OpenCall},
    check::{Asking, NOT_ANSWERED, denied_by_person, denied_by_review, not_reviewed},
    jitter::key_of,
    phase::{Phase, Tools},
    review::{self, Review},
};

/// The end of a review, as published.
struct Completed {
    verdict: Verdict,
    assessment: Assessment,
    /// Why it reached no decision.
    why: Option<String>,
}

impl Turn {
    /// Returns the calls that wait for a person's answer.
    pub fn asked_calls(&self) -> impl Iterator<Item = &ToolCall> {
        let is_asked = |open: &&OpenCall| matches!(open.state, CallState::Asking(_));
        self.calls().iter().filter(is_asked).map(|open| &open.call)
    }

    /// Returns the requests for approval that wait for an answer.
    pub fn approvals(&self) -> impl Iterator<Item = ApprovalRequest> {
        let step_id = self.step().map(|step| self.step_id(step));
        self.calls().iter().filter_map(move |open| {
            let asked = open.asked_event(step_id.as_ref()?)?;
            let EventBody::ApprovalRequested { step_id, tool_call_id, tool_name, input, reason, until } =
                asked
            else {
                return None;
            };
            let turn_id = self.id.clone();
            Some(ApprovalRequest { turn_id, step_id, tool_call_id, tool_name, input, reason, until })
        })
    }

    /// Returns the attempts of reviews that should be running, each until it has its answer.
    pub fn running_reviews(&self) -> impl Iterator<Item = (&ToolCall, ReviewAttempt)> {
        self.calls().iter().filter_map(|open| match &open.state {
            CallState::Reviewing(review) => review.under_way().map(|attempt| (&open.call, attempt)),
            _ => None,
        })
    }

    /// Whether the turn waits only for answers of people.
    pub(super) fn waits_for_people(&self) -> bool {
        let Phase::Tools(tools) = &self.phase else { return false };
        let mut open =
            tools.calls.iter().filter(|open| open.answer().is_none() && !open.is_of_caller()).peekable();
        open.peek().is_some() && open.all(|open| matches!(open.state, CallState::Asking(_)))
    }

    /// Returns what a turn in this phase waits for.
    pub(super) fn wait_for_people(&self, tools: &Tools) -> Wait {
        if !self.waits_for_people() {
            return Wait::Now;
        }
        let ends = tools.calls.iter().filter_map(|open| match open.state {
            CallState::Asking(asking) => asking.end(),
            _ => None,
        });
        Wait::Person { until: ends.min_by_key(|Moment { at, .. }| *at) }
    }

    /// Begins pending checks. The limit on parallel tools also applies to reviews.
    pub(super) fn begin_checks(&mut self, now: Millis, fx: &mut Effects) {
        let places = self.settings.max_parallel_tools.max(1) as usize;
        let Phase::Tools(tools) = &mut self.phase else { return };
        let step_id = StepId::new(&self.id, tools.step);
        let is_reviewed = |open: &&OpenCall| matches!(open.state, CallState::Reviewing(_));
        let mut free = places.saturating_sub(tools.calls.iter().filter(is_reviewed).count());
        for open in tools.calls.iter_mut().filter(|open| open.state == CallState::Pending) {
            match open.check.as_deref() {
                Some(Check::Person(approval)) => {
                    let asking = Asking::new(approval, now);
                    open.ask(asking, &step_id, fx);
                }
                Some(Check::Review { within_ms, .. }) if free > 0 => {
                    free -= 1;
                    open.state = CallState::Reviewing(Review::new(now, *within_ms));
                    fx.tell(open.review_started_event(&step_id));
                }
                Some(Check::Review { .. } | Check::Refused(_) | Check::Report(_) | Check::Caller) | None => {
                    continue;
                }
            }
            self.revision += 1;
        }
    }

    /// Handles a person's answer. A late or second answer changes nothing.
    pub(super) fn on_answer(
        &mut self,
        now: Millis,
        answer: Answer,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let decision = answer.decision();
        let Answer { step, call_id, allows, whole_tool, .. } = answer;
        let Some(name) = self.asked_of(step, &call_id) else { return };
        self.resolve(&call_id, decision.clone(), fx);
        if !allows {
            let text = denied_by_person(decision.reason.as_deref());
            self.answer_call(now, &call_id, &ToolAnswer::error(text), fx);
        } else if whole_tool {
            for id in self.waiting_for_person(&name) {
                self.resolve(&id, Decision { reason: None, ..decision.clone() }, fx);
            }
        }
        self.advance_tools(now, schedule, fx);
    }

    /// Handles the end of a review attempt.
    pub(super) fn on_reviewed(
        &mut self,
        now: Millis,
        (step, call_id, attempt): (u32, &str, u32),
        answer: ReviewAnswer,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let key = key_of(&[self.id.as_str(), call_id]);
        let Some(open) = self.open_call(step, call_id) else { return };
        let CallState::Reviewing(review) = open.state else { return };
        if review.under_way().is_none_or(|under_way| under_way.number != attempt) {
            return;
        }
        let completed = if now >= review.deadline {
            Completed::timed_out()
        } else {
            let (next, verdict, why) = match answer {
                ReviewAnswer::Assessed(assessment) => {
                    return self.review_ends(now, call_id, Completed::decided(assessment), schedule, fx);
                }
                ReviewAnswer::Unreadable(why) => (review.after_failure(now, key, None), Verdict::Failed, why),
                ReviewAnswer::Failed(failure) => {
                    let is_over = !review::is_transient(&failure);
                    let next = review.after_failure(now, key, failure.hint_ms).filter(|_| !is_over);
                    (next, review::verdict(&failure), failure.message)
                }
                ReviewAnswer::Held(failure) => {
                    let held = review.put_off(now, failure.hint_ms.unwrap_or(0));
                    // No attempt was made, also if this ends the review.
                    open.state = CallState::Reviewing(held);
                    (Some(held).filter(Review::is_in_time), Verdict::Failed, failure.message)
                }
            };
            if let Some(next) = next {
                open.state = CallState::Reviewing(next);
                self.revision += 1;
                return;
            }
            Completed::failed(verdict, why)
        };
        self.review_ends(now, call_id, completed, schedule, fx);
    }

    fn review_ends(
        &mut self,
        now: Millis,
        call_id: &str,
        completed: Completed,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        self.complete_review(now, call_id, completed, fx);
        self.advance_tools(now, schedule, fx);
    }

    /// Handles a reviewer that moved to another target during an attempt.
    pub(super) fn on_reviewer_switched(&mut self, switch: ReviewerSwitch, fx: &mut Effects) {
        let ReviewerSwitch { step, call_id, from, to, reason } = switch;
        let is_asked = self.open_call(step, &call_id).is_some_and(
            |open| matches!(open.state, CallState::Reviewing(review) if review.under_way().is_some()),
        );
        if is_asked {
            fx.tell(EventBody::TargetSwitched { from, to, role: TargetRole::Reviewer, reason });
        }
    }

    /// Handles a moment at which a check expires, or the next attempt of a review begins.
    pub(super) fn on_due(&mut self, now: Millis, step: u32, schedule: &dyn Schedule, fx: &mut Effects) {
        let Phase::Tools(tools) = &mut self.phase else { return };
        if tools.step != step {
            return;
        }
        let (mut unanswered, mut late) = (alloc::vec::Vec::new(), alloc::vec::Vec::new());
        for open in &mut tools.calls {
            match &mut open.state {
                CallState::Asking(asking) if asking.until.is_some_and(|until| now >= until) => {
                    unanswered.push(open.call.id.clone());
                }
                CallState::Reviewing(review) if now >= review.deadline => late.push(open.call.id.clone()),
                CallState::Reviewing(review) if review.next_at.is_some_and(|next| now >= next) => {
                    review.next_at = None;
                    self.revision += 1;
                }
                _ => {}
            }
        }
        if unanswered.is_empty() && late.is_empty() {
            return;
        }
        for id in unanswered {
            self.resolve(&id, Decision::new(Decider::Person, Verdict::TimedOut), fx);
            self.answer_call(now, &id, &ToolAnswer::error(NOT_ANSWERED), fx);
        }
        for id in late {
            self.complete_review(now, &id, Completed::timed_out(), fx);
        }
        self.advance_tools(now, schedule, fx);
    }

    /// Shortens waits after a restart if the clock was set back, so that they are no longer than decided.
    pub(super) fn clamp_checks(&mut self, now: Millis) {
        let Phase::Tools(tools) = &mut self.phase else { return };
        for open in &mut tools.calls {
            let before = open.state.clone();
            match &mut open.state {
                CallState::Asking(asking) => asking.clamp(now),
                CallState::Reviewing(review) => review.clamp(now),
                CallState::Pending | CallState::Running { .. } | CallState::Done(_) => continue,
            }
            self.revision += u64::from(open.state != before);
        }
    }

    /// Ends a review: the call may run, is denied, or goes to a person. Enough denials end the turn.
    fn complete_review(&mut self, now: Millis, call_id: &str, completed: Completed, fx: &mut Effects) {
        let Some(step_id) = self.step().map(|step| self.step_id(step)) else { return };
        let Phase::Tools(tools) = &mut self.phase else { return };
        let Some(open) = tools.calls.iter_mut().find(|open| open.call.id == call_id) else { return };
        let CallState::Reviewing(review) = open.state else { return };
        let Completed { verdict, assessment, why } = completed;
        fx.tell(open.review_completed_event(&step_id, now, verdict, review, &assessment));
        open.decisions.push(decided_by_review(verdict, &assessment, why.as_deref()));
        self.revision += 1;
        let otherwise = match open.check.as_deref() {
            Some(Check::Review { otherwise, .. }) => otherwise.clone(),
            _ => None,
        };
        let denial = match (verdict, otherwise) {
            (Verdict::Allowed, _) => {
                open.allow();
                return self.breaker.note(false);
            }
            (Verdict::Denied, _) => denied_by_review(assessment.rationale.as_deref()),
            (_, None) => not_reviewed(why.as_deref().unwrap_or("it timed out")),
            (_, Some(approval)) => {
                let why = why.unwrap_or_else(|| "it timed out".into());
                let reason = format!("the automatic review came to no decision: {why}");
                let approval = Approval { reason: Some(approval.reason.unwrap_or(reason)), ..approval };
                let asking = Asking::new(&approval, now);
                open.check = Some(Box::new(Check::Person(approval)));
                return open.ask(asking, &step_id, fx);
            }
        };
        self.answer_call(now, call_id, &ToolAnswer::error(denial), fx);
        if verdict == Verdict::Denied {
            self.breaker.note(true);
            if self.breaker.is_open() {
                self.fail(now, denied_too_often(), RetryOutcome::Cancelled.into(), fx);
            }
        }
    }

    /// Ends the wait for a person: the call may run, or gets its result.
    fn resolve(&mut self, call_id: &str, decision: Decision, fx: &mut Effects) {
        let Some(step_id) = self.step().map(|step| self.step_id(step)) else { return };
        let Phase::Tools(tools) = &mut self.phase else { return };
        let Some(open) = tools.calls.iter_mut().find(|open| open.call.id == call_id) else { return };
        if matches!(open.state, CallState::Asking(_)) {
            fx.tell(open.resolved_event(&step_id, decision.clone()));
            open.decisions.push(decision);
        }
        open.allow();
        self.revision += 1;
    }

    fn open_call(&mut self, step: u32, call_id: &str) -> Option<&mut OpenCall> {
        match &mut self.phase {
            Phase::Tools(tools) if tools.step == step => {
                tools.calls.iter_mut().find(|open| open.call.id == call_id)
            }
            _ => None,
        }
    }

    /// Returns the tool of a call that waits for a person.
    fn asked_of(&mut self, step: u32, call_id: &str) -> Option<String> {
        let open = self.open_call(step, call_id)?;
        matches!(open.state, CallState::Asking(_)).then(|| open.call.name.clone())
    }

    /// Returns the other calls of this tool that wait for a person.
    fn waiting_for_person(&self, name: &str) -> alloc::vec::Vec<String> {
        self.asked_calls().filter(|call| call.name == name).map(|call| call.id.clone()).collect()
    }
}

impl Completed {
    fn decided(assessment: Assessment) -> Self {
        let verdict = if assessment.allows { Verdict::Allowed } else { Verdict::Denied };
        Self { verdict, assessment, why: None }
    }

    fn failed(verdict: Verdict, why: String) -> Self {
        Self { verdict, assessment: Assessment::default(), why: Some(why) }
    }

    fn timed_out() -> Self {
        Self { verdict: Verdict::TimedOut, assessment: Assessment::default(), why: None }
    }
}

impl OpenCall {
    /// Lets the call run.
    fn allow(&mut self) {
        (self.check, self.state) = (None, CallState::Pending);
    }

    fn ask(&mut self, asking: Asking, step_id: &StepId, fx: &mut Effects) {
        self.state = CallState::Asking(asking);
        if let Some(event) = self.asked_event(step_id) {
            fx.tell(event);
        }
    }
}

/// Returns the decision to keep with the call's result.
fn decided_by_review(verdict: Verdict, assessment: &Assessment, why: Option<&str>) -> Decision {
    let Assessment { risk_level, user_authorization, rationale, .. } = assessment.clone();
    let reason = rationale.or(why.map(Into::into));
    Decision { reason, risk_level, user_authorization, ..Decision::new(Decider::Review, verdict) }
}

fn denied_too_often() -> Failure {
    let message = "the automatic review denied too many tool calls, so the turn was stopped";
    Failure::new(Category::Cancelled, false, message)
}
