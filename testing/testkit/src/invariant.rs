//! The invariants of every turn.

/// Returns the violation unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::Violation::new(format!($($what)+)));
        }
    };
}

mod approval;
mod chain;
mod history;
mod review;
mod screen;
mod tool;

use std::{error, fmt, mem};

use everturn_kernel::{AfterContent, Check, Effect, Input, Millis, Op, Settings};
use everturn_wire::{DoneReason, EventBody, ForcedBy, TargetRole};

use crate::Fact;
use approval::Approvals;
use chain::Chain;
use history::History;
use review::Reviews;
use screen::Screen;
use tool::Tools;

/// A violated invariant, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation(String);

impl Violation {
    fn new(what: String) -> Self {
        Self(what)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl error::Error for Violation {}

/// Checks the invariants of one turn, over any number of processes. Follows it like a client (shows text, and discards
/// it on a rewind), like a provider (history must be valid whenever it is sent), and with a clock.
///
/// - The prompt comes first. At the end come one `done` and one `turn-sealed`, and nothing after that.
/// - The text and reasoning shown are those kept, and a published error is kept.
/// - Every call shown or kept has exactly one result, before the provider is called again; also for a client that knows no
///   extensions.
/// - Provider calls are numbered consecutively, and so are the retries of a step.
/// - A retry comes before content, waits at least as long as its target's hint (unless it is marked as clamped), and
///   fits the budget. Its wait is slept in full unless somebody ends it. The end of a series of retries is published.
/// - No call, whatever it is for, is made before the hint of its target has expired, unless a person asked for it or the
///   retry is marked as clamped. The last step, for the report alone, may wait two minutes beyond a spent budget.
/// - A turn that must report ends with one report, and ends well only with one by the model. Guidance is never a user
///   message.
/// - At most one summary is made at a time. Its end is published, and the retries of the step start again with it.
/// - A tool starts after a save and after the end of the stream (unless tools are eager), and at most once per call
///   (unless it is idempotent and a crash came between). No more tools run at once than the settings allow.
/// - A call that must be checked starts only after it was allowed. Each request for approval and each review ends once.
/// - A review has at most three attempts, within its deadline. Each waits for the hint of the one before, and at least 200
///   or 400 ms (less a tenth); a limit without a hint is not asked again.
///
/// [`World::check`](crate::World::check) applies it to everything that happened. To check a turn that you drive
/// yourself, pass it each [`Fact`] or, without a log, each [`Effect`] and each call:
///
/// ```
/// use everturn_kernel::{Effects, Input, Millis, NoRetry, Prompt, Settings, Turn};
/// use everturn_testkit::Invariants;
/// use everturn_wire::TurnId;
///
/// let settings = Settings::default();
/// let mut invariants = Invariants::new(&settings);
/// let mut effects = Effects::new();
/// let mut turn = Turn::begin(TurnId::from("t"), settings, Prompt::default(), Millis(0), &mut effects);
/// turn.handle(Millis(1), Input::Abort, &NoRetry, &mut effects);
/// for effect in effects.drain() {
///     invariants.see_effect(&effect)?;
/// }
/// invariants.end()?;
/// # Ok::<(), everturn_testkit::Violation>(())
/// ```
#[derive(Clone, Debug)]
pub struct Invariants {
    now: Millis,
    prompted: bool,
    done: Option<DoneReason>,
    sealed: bool,
    errors: u32,
    /// The last call made.
    asked: Option<Op>,
    /// Whether a process was started since.
    restarted: bool,
    rewinds: u32,
    /// Whether a summary is being made.
    compacting: bool,
    /// Whether the turn must end with a report, and whether the published one was the model's.
    must_report: bool,
    report: Option<bool>,
    /// Whether shown content may be withdrawn without a restart.
    may_rewind: bool,
    screen: Screen,
    history: History,
    chain: Chain,
    tools: Tools,
    approvals: Approvals,
    reviews: Reviews,
}

impl Invariants {
    /// Creates the invariants of a turn with these settings.
    pub fn new(settings: &Settings) -> Self {
        Self {
            now: Millis(0),
            prompted: false,
            done: None,
            sealed: false,
            errors: 0,
            asked: None,
            restarted: false,
            rewinds: 0,
            compacting: false,
            must_report: settings.final_report.is_some(),
            report: None,
            may_rewind: settings.after_content == AfterContent::Rewind,
            screen: Screen::default(),
            history: History::default(),
            chain: Chain::new(settings.budget),
            tools: Tools::new(settings),
            approvals: Approvals::default(),
            reviews: Reviews::default(),
        }
    }

    /// Sets the tools whose calls must be checked before they run.
    #[must_use]
    pub fn checking(mut self, checks: &[(String, Check)]) -> Self {
        self.approvals = Approvals::new(checks);
        self
    }

    /// Checks the next fact, which happened at this time.
    ///
    /// # Errors
    /// Returns the violated invariant. After a violation, further results are meaningless.
    pub fn see(&mut self, at: Millis, fact: &Fact) -> Result<(), Violation> {
        if at < self.now {
            self.chain.clock_was_set_back();
        }
        self.now = at;
        self.tools.see(fact)?;
        self.approvals.see(fact)?;
        self.reviews.see(at, fact)?;
        match fact {
            Fact::Told(event) => {
                let rewinds = matches!(event, EventBody::StepRewound { .. });
                let may = self.restarted || self.may_rewind;
                ensure!(!rewinds || may, "content was withdrawn without a restart");
                self.told(event)
            }
            Fact::Kept(role, chunk) => self.history.keep(*role, chunk),
            Fact::Called(op, target) => {
                self.chain.called(at, target.as_deref())?;
                self.asked(*op)
            }
            Fact::Failed(_, failure) => {
                self.chain.failed(at, failure);
                Ok(())
            }
            Fact::Slept(ms) => self.chain.slept(at, *ms),
            Fact::Heard(Input::RetryNow | Input::Release) => {
                self.chain.hurried();
                Ok(())
            }
            Fact::Restarted => {
                self.restarted = true;
                self.chain.restarted();
                Ok(())
            }
            Fact::Saved => {
                self.chain.saved();
                Ok(())
            }
            Fact::Unsaved
            | Fact::Ran { .. }
            | Fact::Reviewed { .. }
            | Fact::Assessed { .. }
            | Fact::Stopped
            | Fact::Heard(_) => Ok(()),
        }
    }

    /// Checks an effect, if there is no log. Hints, sleeps and tools cannot be checked then.
    ///
    /// # Errors
    /// Returns the violated invariant.
    pub fn see_effect(&mut self, effect: &Effect) -> Result<(), Violation> {
        match effect {
            Effect::Tell(event) => self.told(event),
            Effect::Keep(role, chunk) => self.history.keep(*role, chunk),
        }
    }

    /// Checks the history at the start of a provider call.
    ///
    /// # Errors
    /// Returns the violated invariant.
    pub fn asked(&mut self, op: Op) -> Result<(), Violation> {
        ensure!(!self.sealed, "call {op} after the seal");
        self.history.is_complete().map_err(|open| Violation::new(format!("call {op} with {open}")))?;
        let [again, next] = self.asked.map_or([Op::default(); 2], |Op { step, attempt }| {
            [Op { step, attempt: attempt.saturating_add(1) }, Op { step: step.saturating_add(1), attempt: 0 }]
        });
        // The number of a call interrupted by a crash is not used again, even if the call had not begun.
        let was_cut = self.restarted && op >= again && op.step <= next.step;
        ensure!(op == again || op == next || was_cut, "call {op}, expected {again} or {next}");
        (self.asked, self.restarted) = (Some(op), false);
        Ok(())
    }

    /// Checks the end of the turn, when nothing of it runs any more.
    ///
    /// # Errors
    /// Returns the violated invariant: something is unfinished, or what was shown differs from what was kept.
    pub fn end(&self) -> Result<(), Violation> {
        ensure!(self.sealed, "the turn was not sealed");
        self.chain.end()?;
        self.tools.end()?;
        self.approvals.end()?;
        ensure!(!self.compacting, "the end of a summary was never published");
        self.history.is_complete().map_err(|open| Violation::new(format!("sealed with {open}")))?;
        self.screen.end(&self.history)?;
        let (told, kept) = (self.errors, self.history.errors);
        ensure!(told == kept, "{told} errors were published, but {kept} were saved");
        let failed = u32::from(self.done == Some(DoneReason::Error));
        ensure!(told == failed, "{told} errors were published, expected {failed}");
        Ok(())
    }

    /// Returns how often shown text was withdrawn.
    pub fn rewinds(&self) -> u32 {
        self.rewinds
    }

    fn told(&mut self, event: &EventBody) -> Result<(), Violation> {
        let seals = matches!(event, EventBody::TurnSealed);
        ensure!(!self.sealed, "event after the seal: {}", shown(event));
        ensure!(self.done.is_none() || seals, "event after done: {}", shown(event));
        self.begins(event)?;
        match event {
            EventBody::TextDelta { .. } | EventBody::ReasoningDelta { .. } | EventBody::ToolCall { .. } => {
                ensure!(self.errors == 0, "content after the error: {}", shown(event));
                self.chain.content()?;
            }
            EventBody::StepComplete { .. } => self.chain.new_step(),
            EventBody::StepRewound { .. } => {
                self.rewinds += 1;
                self.chain.rewind();
            }
            EventBody::ProviderRetry {
                attempt, delay_ms, next_at, clamped, shared, budget_left_ms, ..
            } => {
                ensure!(self.errors == 0, "a retry after the error");
                let clamped = *clamped == Some(true);
                let is_charged = budget_left_ms.is_some();
                self.chain.scheduled(*attempt, *delay_ms, next_at.map(Millis), clamped, is_charged)?;
                self.chain.asked(*shared != Some(true));
            }
            EventBody::TargetSwitched { from, to, role, .. } => {
                ensure!(from != to, "a switch from {from} to itself");
                if *role != TargetRole::Reviewer {
                    self.chain.moved();
                }
            }
            EventBody::Status { retry, .. } => self.chain.asking(self.now, retry.as_deref())?,
            EventBody::RetryEnded { attempts, outcome, .. } => self.chain.ended(*attempts, *outcome)?,
            EventBody::CompactionStarted { .. } => {
                ensure!(
                    !mem::replace(&mut self.compacting, true),
                    "a summary began before the previous one ended"
                );
                self.chain.new_series();
                // It may be asked of another target.
                self.chain.moved();
            }
            EventBody::CompactionCompleted { .. } => {
                ensure!(mem::replace(&mut self.compacting, false), "the end of a summary that had not begun");
                self.chain.new_series();
                self.chain.moved();
            }
            EventBody::ReportMissing { .. } => self.chain.step_goes_on(),
            EventBody::ReportForced { by, .. } => {
                // Without a log, the time is not known.
                self.chain.last_step((self.now > Millis(0)).then_some(self.now));
                // The step is asked again.
                if *by != ForcedBy::MaxSteps {
                    self.chain.new_series();
                }
            }
            EventBody::FinalReport(report) => {
                ensure!(self.must_report, "a report that was not requested");
                ensure!(self.report.is_none(), "a second report");
                ensure!(report.success == report.report.is_some(), "not a report: {report:?}");
                self.report = Some(report.success);
            }
            EventBody::Done { reason, calls, .. } => {
                let hands_over = !calls.is_empty();
                ensure!(!hands_over || *reason == DoneReason::ToolCalls, "{reason:?} hands calls over");
                self.done = Some(reason.clone());
                let reported = self.report == Some(true);
                ensure!(
                    self.must_report == self.report.is_some(),
                    "the number of reports at the end is wrong"
                );
                let is_due = !self.must_report || *reason != DoneReason::Stop || reported;
                ensure!(is_due, "a turn ends successfully without its report");
                ensure!(
                    !self.must_report || *reason != DoneReason::MaxSteps,
                    "the step limit ends a turn that must report"
                );
            }
            EventBody::Error { .. } => self.errors += 1,
            EventBody::TurnSealed => {
                ensure!(self.done.is_some(), "sealed before done");
                self.sealed = true;
            }
            _ => {}
        }
        self.screen.show(event)
    }

    /// Checks that the prompt comes first, once. A turn that repeats another one has none.
    fn begins(&mut self, event: &EventBody) -> Result<(), Violation> {
        let again = matches!(event, EventBody::TurnStart { retry_of: Some(_), .. });
        let first = again || matches!(event, EventBody::UserMessage { .. });
        ensure!(first != self.prompted, "the prompt comes first, once: {}", shown(event));
        self.prompted = true;
        if again {
            self.history.goes_on();
        }
        Ok(())
    }
}

fn shown(event: &EventBody) -> String {
    Fact::Told(event.clone()).line().unwrap_or_default()
}
