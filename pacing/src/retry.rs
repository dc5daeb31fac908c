//! When a turn asks again after a failure, and whom.

mod cycling;
mod exponential;
mod handover;
mod layers;
mod limits;
mod others;
mod patient;
mod saved;
mod settings;

pub use cycling::Cycling;
pub use exponential::{Exponential, Switching};
pub use layers::{Layers, check, effective};
pub use limits::LongLimits;
pub use patient::Patient;
pub use saved::SavedPolicy;

use alloc::sync::Arc;
use core::{fmt, time::Duration};

use everturn_kernel::{Directive, NextCall, Question, Retry, Schedule};
use everturn_wire::RetryPreset;

/// What a turn does about its failures. Decides in three layers: the [`Waits`], then whether the turn hands over to another
/// target instead of waiting, then what it does about limits that last long.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RetryPolicy {
    /// The schedule of the waits.
    pub waits: Waits,
    /// Whether the turn has several targets although its schedule does not choose between them: a target that fails for
    /// good, or needs a wait of more than 10 s, then hands over to the next free one at once. Set by [`Self::on_route`].
    pub hands_over: bool,
    /// What it does about limits that last longer than its waits.
    pub long_limits: LongLimits,
}

/// The schedule of a [`RetryPolicy`].
#[derive(Clone, Default)]
pub enum Waits {
    /// See [`Patient`].
    #[default]
    Patient,
    /// See [`Exponential`].
    Exponential(Exponential),
    /// See [`Cycling`].
    Cycling(Cycling),
    /// An embedder's own schedule. It is not saved with its turns: after a restart they continue with the configured one.
    Own(Arc<dyn Schedule + Send + Sync>),
}

impl Waits {
    fn schedule(&self) -> &dyn Schedule {
        match self {
            Self::Patient => &Patient,
            Self::Exponential(schedule) => schedule,
            Self::Cycling(schedule) => schedule,
            Self::Own(schedule) => schedule,
        }
    }
}

impl fmt::Debug for Waits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Patient => f.write_str("Patient"),
            Self::Exponential(schedule) => schedule.fmt(f),
            Self::Cycling(schedule) => schedule.fmt(f),
            Self::Own(_) => f.write_str("Own"),
        }
    }
}

impl PartialEq for Waits {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Patient, Self::Patient) => true,
            (Self::Exponential(one), Self::Exponential(other)) => one == other,
            (Self::Cycling(one), Self::Cycling(other)) => one == other,
            (Self::Own(one), Self::Own(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl From<Waits> for RetryPolicy {
    fn from(waits: Waits) -> Self {
        Self { waits, ..Self::default() }
    }
}

impl From<Patient> for RetryPolicy {
    fn from(_: Patient) -> Self {
        Waits::Patient.into()
    }
}

impl From<Exponential> for RetryPolicy {
    fn from(schedule: Exponential) -> Self {
        Waits::Exponential(schedule).into()
    }
}

impl From<Cycling> for RetryPolicy {
    fn from(schedule: Cycling) -> Self {
        Waits::Cycling(schedule).into()
    }
}

impl RetryPolicy {
    /// Creates a policy with an embedder's own schedule.
    pub fn own(schedule: impl Schedule + Send + Sync + 'static) -> Self {
        Waits::Own(Arc::new(schedule)).into()
    }

    /// Returns the policy for a turn with several targets.
    #[must_use]
    pub fn on_route(self) -> Self {
        Self { hands_over: !self.waits.schedule().chooses_targets(), ..self }
    }

    /// Returns the policy with this behaviour at limits that last long.
    #[must_use]
    pub fn with(self, long_limits: LongLimits) -> Self {
        Self { long_limits, ..self }
    }

    /// Returns the name of the schedule in settings; `None` if it is an embedder's own.
    pub fn name(&self) -> Option<&'static str> {
        self.settings().preset.map(RetryPreset::as_str)
    }

    /// Returns the maximum deviation of each wait, as a fraction of it.
    pub fn jitter(&self) -> f64 {
        if let Waits::Exponential(schedule) = &self.waits { schedule.jitter } else { 0.0 }
    }

    /// Returns the policy without jitter.
    #[must_use]
    pub fn exact(mut self) -> Self {
        if let Waits::Exponential(schedule) = &mut self.waits {
            schedule.jitter = 0.0;
        }
        self
    }
}

impl Schedule for RetryPolicy {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.waits.schedule().delay_for(retry)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        let waits = self.waits.schedule();
        let directive =
            if self.hands_over { handover::decide(waits, question) } else { waits.decide(question) };
        self.long_limits.apply(question, directive)
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        match self.hands_over {
            true => call.after_wait().unwrap_or_else(|| call.current_or_free()),
            false => self.waits.schedule().next_target(call),
        }
    }

    fn chooses_targets(&self) -> bool {
        self.hands_over || self.waits.schedule().chooses_targets()
    }

    fn ignores_holds(&self) -> bool {
        self.waits.schedule().ignores_holds()
    }

    fn counts_replies(&self) -> bool {
        self.waits.schedule().counts_replies()
    }

    fn max_retries(&self) -> Option<u32> {
        self.waits.schedule().max_retries()
    }
}
