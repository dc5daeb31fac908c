//! The retries of a step, and the waits before them.

use std::collections::HashMap;

use everturn_kernel::{Budget, Millis};
use everturn_wire::{Category, Failure, RetryOutcome, RetryPhase, RetryState};

use super::Violation;

/// Maximum wait that the kernel schedules: about 143,000 years.
const LONGEST_WAIT_MS: u64 = 1 << 52;

/// Waits allowed to the last step, for the report alone, after its budget was spent.
const GRACE_MS: u64 = 120_000;

#[derive(Clone, Debug)]
pub(super) struct Chain {
    /// The budget of this step.
    budget: Budget,
    /// Whether content of the current attempt was shown.
    has_content: bool,
    /// Number of retries scheduled in this step, and the sum of their waits.
    retries: u32,
    waited_ms: u64,
    /// Number of these retries before which nobody was asked, and whether somebody was before the last.
    unasked: u32,
    is_asked: bool,
    /// The same sum of the last step, which goes on after a failed reply.
    waited_before_ms: u64,
    /// Whether the end of the series of retries has not been published yet.
    is_open: bool,
    /// Whether the last scheduled retry is still waiting.
    is_waiting: bool,
    /// Whether the end may be published again, because the answer that ended the series was discarded.
    may_end_again: bool,
    /// The provider's hint when the current call failed.
    hint_ms: Option<u64>,
    /// Whether another target was chosen since then, to which the hint does not apply.
    has_moved: bool,
    due: Due,
    /// When the present wait ends, and how long it is, if it is charged to the budget.
    charged: Option<(Millis, u64)>,
    /// Whether the next call may come before the hint of its target expires.
    may_clamp: bool,
    /// Whether this step has made a call.
    has_called: bool,
    /// The name of the target that was called last.
    target: Option<String>,
    /// When the hints of targets expire, by name; and that of the last failure, which is not saved yet.
    hints: HashMap<Option<String>, Millis>,
    unsaved: Option<Millis>,
}

/// When the next call may be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    /// No wait is scheduled.
    Now,
    At(Millis),
    /// A person requested it earlier, or the clock was set.
    AnyTime,
}

impl Chain {
    pub(super) fn new(budget: Budget) -> Self {
        Self {
            budget,
            waited_before_ms: 0,
            may_clamp: false,
            has_called: false,
            target: None,
            hints: HashMap::new(),
            unsaved: None,
            has_content: false,
            retries: 0,
            waited_ms: 0,
            unasked: 0,
            is_asked: false,
            is_open: false,
            is_waiting: false,
            may_end_again: false,
            hint_ms: None,
            has_moved: false,
            due: Due::Now,
            charged: None,
        }
    }

    pub(super) fn failed(&mut self, at: Millis, failure: &Failure) {
        // Waiting does not make a conversation shorter: a summary is asked for at once.
        self.hint_ms = failure.hint_ms.filter(|_| failure.category != Category::ContextOverflow);
        self.unsaved = self.hint_ms.map(|hint_ms| at.plus(hint_ms.min(LONGEST_WAIT_MS)));
    }

    pub(super) fn saved(&mut self) {
        if let Some(until) = self.unsaved.take() {
            self.hints.insert(self.target.clone(), until);
        }
    }

    /// Handles a restart: what was not saved is forgotten.
    pub(super) fn restarted(&mut self) {
        self.unsaved = None;
    }

    /// Handles a switch to another target.
    pub(super) fn moved(&mut self) {
        self.has_moved = true;
    }

    /// Handles a scheduled retry. A clamped one may come before the hint expires.
    pub(super) fn scheduled(
        &mut self,
        attempt: u32,
        delay_ms: u64,
        next_at: Option<Millis>,
        clamped: bool,
        is_charged: bool,
    ) -> Result<(), Violation> {
        ensure!(!self.has_content, "a retry after content");
        let expected = self.retries;
        ensure!(attempt == expected, "retry {attempt}, expected retry {expected} of this step");
        ensure!(!self.is_waiting, "a retry while one waits");
        let hint_ms = self.hint_ms.filter(|_| !clamped && !self.has_moved).unwrap_or(0).min(LONGEST_WAIT_MS);
        ensure!(delay_ms >= hint_ms, "a wait of {delay_ms} ms after a hint of {hint_ms} ms");
        let Some(next_at) = next_at else {
            return Err(Violation::new("a retry without its time".into()));
        };
        self.retries += 1;
        self.charged = is_charged.then_some((next_at, delay_ms));
        if is_charged {
            self.waited_ms = self.waited_ms.saturating_add(delay_ms);
        }
        (self.is_open, self.is_waiting, self.due) = (true, true, Due::At(next_at));
        self.may_clamp = clamped;
        let (waited_ms, Budget { max_wait_ms, deadline }) = (self.waited_ms, self.budget);
        let fits = max_wait_ms.is_none_or(|most| waited_ms <= most);
        ensure!(
            fits,
            "the waits of this step add up to {waited_ms} ms: more than the budget's {max_wait_ms:?}"
        );
        let in_time = deadline.is_none_or(|deadline| delay_ms == 0 || next_at <= deadline);
        ensure!(in_time, "a wait until {next_at:?}, after the deadline {deadline:?}");
        Ok(())
    }

    /// Handles whether the scheduled retry follows a call.
    pub(super) fn asked(&mut self, is_asked: bool) {
        self.unasked += u32::from(!is_asked);
        self.is_asked = is_asked;
    }

    /// Handles the start of a sleep.
    pub(super) fn slept(&self, at: Millis, ms: u64) -> Result<(), Violation> {
        match self.due {
            Due::Now => Err(Violation::new(format!("{ms} ms are slept, though no retry was told"))),
            Due::At(due) => {
                let left = due.since(at);
                ensure!(ms == left, "sleeps {ms} ms, but {left} ms of the published wait are left");
                Ok(())
            }
            Due::AnyTime => Ok(()),
        }
    }

    /// Handles "retry now".
    pub(super) fn hurried(&mut self) {
        self.any_time();
    }

    pub(super) fn clock_was_set_back(&mut self) {
        self.any_time();
    }

    fn any_time(&mut self) {
        if self.due != Due::Now {
            self.due = Due::AnyTime;
        }
    }

    /// Handles the published end of a wait. What is left of it is not charged: without a log, as if it had just begun.
    pub(super) fn asking(&mut self, now: Millis, retry: Option<&RetryState>) -> Result<(), Violation> {
        let Some(retry) = retry else {
            return Err(Violation::new("a turn tells its status only for its retries".into()));
        };
        ensure!(
            (retry.phase, retry.next_at) == (RetryPhase::Asking, None),
            "not the end of a wait: {retry:?}"
        );
        ensure!(self.is_waiting, "the end of a wait that had not begun");
        let last = self.retries.saturating_sub(1);
        ensure!(retry.attempt == last, "retry {} was made, but {last} was scheduled last", retry.attempt);
        self.is_waiting = false;
        if let Some((next_at, delay_ms)) = self.charged.take() {
            self.waited_ms = self.waited_ms.saturating_sub(next_at.since(now).min(delay_ms));
        }
        Ok(())
    }

    /// Handles the start of a provider call.
    pub(super) fn called(&mut self, at: Millis, target: Option<&str>) -> Result<(), Violation> {
        if let Due::At(due) = self.due {
            ensure!(at >= due, "the provider is called {} ms before the wait ends", due.since(at));
        }
        self.target = target.map(Into::into);
        // A hint that is overridden on purpose is over.
        let until = self.hints.remove(&self.target);
        if let Some(until) = until.filter(|_| !self.may_clamp && self.due != Due::AnyTime) {
            let name = target.unwrap_or("the target");
            ensure!(at >= until, "{name} is called {} ms before its hint expires", until.since(at));
        }
        (self.may_clamp, self.has_called) = (false, true);
        (self.due, self.hint_ms, self.has_moved) = (Due::Now, None, false);
        Ok(())
    }

    pub(super) fn content(&mut self) -> Result<(), Violation> {
        ensure!(!self.is_open && !self.is_waiting, "content before the end of the retries was published");
        self.has_content = true;
        Ok(())
    }

    /// Handles the published end of a series.
    pub(super) fn ended(&mut self, attempts: u32, outcome: RetryOutcome) -> Result<(), Violation> {
        // A wait that is too long is also published before the first retry, and after content.
        let is_first = outcome == RetryOutcome::TooLong;
        ensure!(self.is_open || self.may_end_again || is_first, "the end of retries that had not begun");
        let made = self.retries - self.unasked - u32::from(self.is_waiting && self.is_asked);
        ensure!(attempts == made, "{attempts} retries were published, but {made} were made");
        (self.is_open, self.is_waiting, self.may_end_again) = (false, false, false);
        Ok(())
    }

    /// Handles a rewind of the step.
    pub(super) fn rewind(&mut self) {
        self.may_end_again = self.retries > 0;
        self.has_content = false;
    }

    pub(super) fn new_step(&mut self) {
        self.new_series();
        (self.waited_before_ms, self.waited_ms, self.has_called) = (self.waited_ms, 0, false);
    }

    /// Handles a failed reply: the waits of its step are still added up.
    pub(super) fn step_goes_on(&mut self) {
        self.waited_ms = self.waited_before_ms;
    }

    /// Handles the start of the last step, for the report alone: a new step, or the same one again. `now` is absent if the
    /// time is not known.
    pub(super) fn last_step(&mut self, now: Option<Millis>) {
        if !self.has_called {
            self.waited_ms = 0;
        }
        let Budget { max_wait_ms, deadline } = self.budget;
        // If results said what was wrong, the step before goes on. No event says so, so the grace may be too long.
        let waited_ms = self.waited_before_ms.saturating_add(self.waited_ms);
        let is_spent = max_wait_ms.is_some_and(|most| most <= waited_ms)
            || deadline.is_some_and(|deadline| now.is_none_or(|now| deadline <= now));
        if is_spent && max_wait_ms != Some(0) {
            let grace = |most: u64| most.max(waited_ms.saturating_add(GRACE_MS));
            self.budget = Budget {
                max_wait_ms: max_wait_ms.map(grace),
                deadline: deadline.and_then(|deadline| Some(deadline.max(now?.plus(GRACE_MS)))),
            };
        }
    }

    /// Starts a new series of retries within the step. Waits are still added up.
    pub(super) fn new_series(&mut self) {
        (self.has_content, self.may_end_again, self.is_waiting) = (false, false, false);
        (self.retries, self.unasked) = (0, 0);
    }

    pub(super) fn end(&self) -> Result<(), Violation> {
        ensure!(!self.is_open, "the end of a series of retries was never published");
        Ok(())
    }
}
