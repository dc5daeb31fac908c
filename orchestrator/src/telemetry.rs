//! Figures of what runs, for whatever recorder of the `metrics` crate the process has; without one they cost next to
//! nothing.

use everturn_wire::{Category, DoneReason, EventBody};
use metrics::{counter, describe_counter, describe_gauge, gauge};

const STARTED: &str = "everturn_turns_started_total";
const SEALED: &str = "everturn_turns_sealed_total";
const RETRIES: &str = "everturn_retries_scheduled_total";
const CALLS: &str = "everturn_provider_calls_total";
const ACTIVE: &str = "everturn_turns_active";
const WAITING: &str = "everturn_turns_waiting";
const SUBSCRIBERS: &str = "everturn_subscribers";

/// Says what the figures mean.
pub(crate) fn describe() {
    describe_counter!(STARTED, "Turns that began");
    describe_counter!(SEALED, "Turns that ended, by reason");
    describe_counter!(RETRIES, "Retries that were scheduled, by the category of the failure");
    describe_counter!(CALLS, "Provider calls, by model");
    describe_gauge!(ACTIVE, "Turns that run or wait");
    describe_gauge!(WAITING, "Turns that wait for a retry");
    describe_gauge!(SUBSCRIBERS, "Subscriptions to conversations");
}

/// Something to count, once what tells it is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Started,
    Retry(Category),
    Sealed(String),
}

impl Count {
    /// What an event tells.
    pub(crate) fn of(event: &EventBody) -> Option<Self> {
        Some(match event {
            EventBody::TurnStart { .. } => Self::Started,
            EventBody::ProviderRetry { category, .. } => Self::Retry(category.unwrap_or(Category::Unknown)),
            // A provider's own words are without number.
            EventBody::Done { reason: DoneReason::Other(_), .. } => Self::Sealed("other".to_owned()),
            EventBody::Done { reason, .. } => Self::Sealed(reason.as_str().to_owned()),
            _ => return None,
        })
    }

    /// Counts it.
    pub(crate) fn add(self) {
        match self {
            Self::Started => counter!(STARTED),
            Self::Retry(category) => counter!(RETRIES, "category" => word(category)),
            Self::Sealed(reason) => counter!(SEALED, "reason" => reason),
        }
        .increment(1);
    }
}

pub(crate) fn provider_called(model: &str) {
    counter!(CALLS, "model" => model.to_owned()).increment(1);
}

/// Something that counts as long as it is there.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Figure);

/// Of what. One byte: a parked turn has two of these.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
enum Figure {
    Active,
    Waiting,
    Subscribers,
}

impl Figure {
    fn name(self) -> &'static str {
        match self {
            Self::Active => ACTIVE,
            Self::Waiting => WAITING,
            Self::Subscribers => SUBSCRIBERS,
        }
    }
}

impl GaugeGuard {
    pub(crate) fn active_turn() -> Self {
        Self::new(Figure::Active)
    }

    pub(crate) fn waiting_turn() -> Self {
        Self::new(Figure::Waiting)
    }

    pub(crate) fn subscriber() -> Self {
        Self::new(Figure::Subscribers)
    }

    fn new(figure: Figure) -> Self {
        gauge!(figure.name()).increment(1.0);
        Self(figure)
    }
}

impl Drop for GaugeGuard {
    fn drop(&mut self) {
        gauge!(self.0.name()).decrement(1.0);
    }
}

/// A category in its word on the wire.
fn word(category: Category) -> String {
    serde_json::to_value(category).ok().and_then(|word| Some(word.as_str()?.to_owned())).unwrap_or_default()
}
