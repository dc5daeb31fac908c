//! A provider call failed: wait and retry, or give up.

use alloc::boxed::Box;

use everturn_wire::{Because, Category, CompactionCause, DoneReason, EventBody, Failure, RetryOutcome};

use super::{Turn, reply::EMPTY};
use crate::{
    Ask, Directive, Effects, GiveUp, Ledger, Millis, Op, Question, Retry, Schedule, Seen, Target,
    ledger::Scheduled,
    millis::{LONGEST_WAIT_MS, wait_ms},
    phase::{Backoff, Charge, Phase},
};

/// Maximum number of retries of a step after internal failures, such as a panic of the provider. It may well panic again,
/// and no provider said that waiting helps.
const MOST_FAULTS: u32 = 3;

/// Number of retries of a step that may come at once; with more targets, as many as there are targets.
const MOST_AT_ONCE: usize = 10;

/// Minimum wait before those that follow, in milliseconds. A provider that fails at once would otherwise be asked in a tight
/// loop by a schedule that never waits, and no budget would end it.
const LEAST_WAIT_MS: u64 = 100;

impl Turn {
    pub(super) fn on_failed(
        &mut self,
        now: Millis,
        failure: Failure,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        if self.is_summarizing() {
            // What its call used is no content: nobody has seen anything of it.
            self.settle_own_usage(fx);
        }
        let Phase::Streaming(streaming) = &self.phase else { return };
        if streaming.has_content() && !self.may_rewind(streaming) {
            return self.give_up(now, failure, RetryOutcome::NotRetryable.into(), schedule, fx);
        }
        if self.compacts_on(&failure) {
            return self.compact(now, (CompactionCause::Overflow, Some(failure)), schedule, fx);
        }
        let op = streaming.op;
        if self.is_summary_ahead() {
            return self.give_up_summary(now, failure, RetryOutcome::NotRetryable.into(), schedule, fx);
        }
        match self.decide(now, &streaming.ledger, &failure, schedule) {
            Ok(ask) => {
                self.take_back(&failure, fx);
                self.ask_again(now, op, ask, failure, schedule.max_retries(), fx);
            }
            Err(given_up) if self.is_summarizing() => {
                self.give_up_summary(now, failure, given_up, schedule, fx);
            }
            Err(given_up) => self.give_up(now, failure, given_up, schedule, fx),
        }
    }

    /// Handles a stream that ended well but empty. It is retried like a failure, even if it reported usage, unless it
    /// was cut off for a reason that a retry does not change.
    pub(super) fn on_empty(
        &mut self,
        now: Millis,
        reason: &DoneReason,
        schedule: &dyn Schedule,
        fx: &mut Effects,
    ) {
        let Phase::Streaming(streaming) = &mut self.phase else { return };
        let failure = emptiness(reason);
        if self.reporting.is_some() && failure.retryable && streaming.ledger.summarizing.is_none() {
            // Nothing of this answer is kept.
            streaming.pieces.clear();
            self.tell_recovered(fx);
            self.complete_step(now, fx);
            return self.guide(now, &[EMPTY], schedule, fx);
        }
        self.settle_own_usage(fx);
        self.on_failed(now, failure, schedule, fx);
    }

    /// Decides what comes next, or why nothing does. The returned wait is final.
    pub(super) fn decide(
        &self,
        now: Millis,
        ledger: &Ledger,
        failure: &Failure,
        schedule: &dyn Schedule,
    ) -> Result<Decided, GiveUp> {
        if failure.category == Category::Internal && ledger.faults >= MOST_FAULTS {
            return Err(RetryOutcome::NotRetryable.into());
        }
        if ledger.earlier > 0 && self.is_last_call(ledger, schedule) {
            return Err(RetryOutcome::Exhausted.into());
        }
        let nameless = [Target::default()];
        let targets = if self.targets().is_empty() { &nameless[..] } else { self.targets() };
        let key = Retry::new(0, failure).of_turn(&self.id).key;
        let left_ms = self.settings.budget.left(now, ledger.waited_ms);
        let question = Question { key, left_ms, ..Question::new(now, failure, ledger, targets) };
        let ask = match schedule.decide(&question) {
            Directive::Ask(ask) => ask,
            Directive::GiveUp(give_up) => return Err(give_up),
        };
        let Some(next) = targets.get(ask.target).filter(|_| !ledger.out.contains(&ask.target)) else {
            let detail = Some("the retry schedule chose a target that may not be asked in this step".into());
            return Err(GiveUp { outcome: RetryOutcome::NotRetryable, detail });
        };
        // A request before a target's hint expires would be refused again.
        let is_same = targets.get(ledger.target).is_some_and(|failed| next.is_same_request(failed));
        let own_ms = failure.hint_ms.filter(|_| is_same).unwrap_or(0);
        let hint_ms = if ask.clamped { 0 } else { own_ms.max(self.hints.left_ms(now, next)) };
        let is_at_once = (ledger.made() as usize) < MOST_AT_ONCE.max(targets.len());
        let least_ms = if is_at_once { 0 } else { LEAST_WAIT_MS };
        let delay_ms = wait_ms(ask.wait).max(hint_ms).max(least_ms).min(LONGEST_WAIT_MS);
        self.afford(now, ledger, delay_ms, Charge::of(&ask))?;
        Ok(Decided { ask, delay_ms })
    }

    /// Carries out a decision: publishes a switch before its retry.
    fn ask_again(
        &mut self,
        now: Millis,
        op: Op,
        decided: Decided,
        failure: Failure,
        max_attempts: Option<u32>,
        fx: &mut Effects,
    ) {
        let Phase::Streaming(streaming) = &self.phase else { return };
        let mut ledger = streaming.ledger.clone();
        let Decided { ask, delay_ms } = decided;
        self.carry_out(now, &mut ledger, &ask, &failure, fx);
        let faults_left = MOST_FAULTS.saturating_sub(ledger.faults);
        let earlier = ledger.earlier;
        let backoff = Backoff::after(now, op, ledger, delay_ms, Charge::of(&ask));
        let mut max_attempts = max_attempts.filter(|_| !ask.uncounted).map(|max| max.saturating_sub(earlier));
        if failure.category == Category::Internal {
            let last = backoff.ledger.counted().saturating_add(faults_left);
            max_attempts = max_attempts.map(|max| max.min(last));
        }
        let told = Told { max_attempts, clamped: ask.clamped, ..Told::default() };
        self.back_off(backoff, failure, told, fx);
    }

    /// Records a decision in the ledger, and moves to its target.
    pub(super) fn carry_out(
        &mut self,
        now: Millis,
        ledger: &mut Ledger,
        ask: &Ask,
        failure: &Failure,
        fx: &mut Effects,
    ) {
        let failed = ledger.target;
        if !self.targets().is_empty() {
            ledger.note(Seen::new(now, ledger, failure), ask.ends_cycle);
        }
        ledger.faults = ledger.faults.saturating_add((failure.category == Category::Internal).into());
        if ask.drops_failed && !ledger.out.contains(&failed) {
            ledger.out.push(failed);
        }
        ledger.target = ask.target;
        ledger.uncounted = ledger.uncounted.saturating_add(ask.uncounted.into());
        if ask.target != failed
            && let (Some(from), Some(to)) = (self.target_name(failed), self.target_name(ask.target))
        {
            let reason = ask.reason.clone().into_owned();
            fx.tell(EventBody::TargetSwitched { from, to, role: self.role(), reason });
        }
        self.target = ask.target;
    }

    /// Schedules a retry and publishes it.
    pub(super) fn back_off(&mut self, mut backoff: Backoff, failure: Failure, told: Told, fx: &mut Effects) {
        let Told { max_attempts, clamped, shared, because } = told;
        let in_budget = backoff.charge == Charge::Budget;
        let delay_ms = backoff.decided_ms;
        let waited_ms = backoff.ledger.waited_ms;
        let budget = self.budget(&backoff.ledger).max_wait_ms.filter(|_| in_budget);
        // A call that was not made is not a retry.
        self.retries = self.retries.saturating_add((!backoff.held).into());
        self.waited_ms = self.waited_ms.saturating_add(delay_ms);
        let max_attempts = max_attempts.map(|max| max.saturating_add(backoff.ledger.uncounted));
        backoff.ledger.last = Some(Box::new(Scheduled {
            delay_ms,
            max_attempts,
            category: failure.category,
            message: failure.message.clone(),
            code: failure.code.clone(),
            shared,
            held: backoff.held,
            because,
        }));
        fx.tell(EventBody::ProviderRetry {
            attempt: backoff.ledger.retries.saturating_sub(1),
            delay_ms,
            message: failure.message,
            code: failure.code,
            next_at: Some(backoff.resume_at.0),
            category: Some(failure.category),
            max_attempts,
            budget_left_ms: budget.map(|max| max.saturating_sub(waited_ms)),
            target: self.target_name(backoff.ledger.target),
            hinted: failure.hint_ms.is_some_and(|hint_ms| is_hint(hint_ms, delay_ms)).then_some(true),
            clamped: clamped.then_some(true),
            shared: shared.then_some(true),
            because,
            // Filled in by the host, which made the call.
            failed_target: None,
            latency_ms: None,
        });
        self.enter(Phase::Backoff(backoff));
        self.forget_hint();
    }
}

/// What subscribers learn about a retry beside its wait.
#[derive(Clone, Copy, Default)]
pub(super) struct Told {
    /// `None` also for a retry that does not count against it.
    pub(super) max_attempts: Option<u32>,
    /// Whether the wait is deliberately shorter than the target's hint.
    pub(super) clamped: bool,
    /// Whether no call was made, because others were refused or come first.
    pub(super) shared: bool,
    /// Why it waits, if its schedule did not decide that.
    pub(super) because: Option<Because>,
}

/// A directive within the budget, with its final wait in milliseconds.
pub(super) struct Decided {
    pub(super) ask: Ask,
    pub(super) delay_ms: u64,
}

impl Backoff {
    /// Waits before the next call of the step of a failed one.
    pub(super) fn after(now: Millis, failed: Op, ledger: Ledger, delay_ms: u64, charge: Charge) -> Self {
        Self::until(now, failed.next(), ledger, delay_ms, charge)
    }

    /// Waits before this call.
    pub(super) fn until(now: Millis, op: Op, mut ledger: Ledger, delay_ms: u64, charge: Charge) -> Self {
        ledger.retries = ledger.retries.saturating_add(1);
        ledger.walls = ledger.walls.saturating_add((charge == Charge::Wall).into());
        if let Some(sum) = charge.sum(&mut ledger) {
            *sum = sum.saturating_add(delay_ms);
        }
        Self { op, ledger, resume_at: now.plus(delay_ms), decided_ms: delay_ms, held: false, charge }
    }
}

/// Whether a wait comes from the hint: it is as long, or longer by no more than the jitter of a schedule (2 % and 1 s).
fn is_hint(hint_ms: u64, delay_ms: u64) -> bool {
    let spread_ms = hint_ms / 50 + hint_ms.min(1_000);
    hint_ms > 0 && (hint_ms..=hint_ms.saturating_add(spread_ms)).contains(&delay_ms)
}

/// Returns the failure for an empty answer.
fn emptiness(reason: &DoneReason) -> Failure {
    match reason {
        DoneReason::Length => Failure::new(
            Category::InvalidResponse,
            false,
            "the model reached its token limit before answering: allow longer answers or less reasoning",
        ),
        DoneReason::ContentFilter => Failure::new(
            Category::ContentPolicy,
            false,
            "the provider's content filter blocked the whole answer",
        ),
        _ => Failure::new(Category::InvalidResponse, true, "the provider sent an empty answer"),
    }
}
