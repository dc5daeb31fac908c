//! Metrics, for the `metrics` crate's recorder of the process; without a recorder they cost next to nothing.

use std::time::Duration;

use everturn_wire::{Category, DoneReason, EventBody, Usage, Verdict};
use metrics::{
    SharedString, Unit, counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram,
};

const STARTED: &str = "everturn_turns_started_total";
const SEALED: &str = "everturn_turns_sealed_total";
const RETRIES: &str = "everturn_retries_scheduled_total";
const CALLS: &str = "everturn_provider_calls_total";
const FAILED: &str = "everturn_provider_calls_failed_total";
const LATENCY: &str = "everturn_provider_call_seconds";
const NO_REPORT: &str = "everturn_replies_without_report_total";
const COLLAPSED: &str = "everturn_steps_collapsed_total";
const WAITS: &str = "everturn_retry_wait_seconds";
const TURNS: &str = "everturn_turn_seconds";
const TOOLS: &str = "everturn_tool_seconds";
const REVIEWS: &str = "everturn_reviews_total";
const REVIEW_ATTEMPTS: &str = "everturn_review_attempts_total";
const REVIEW_TIME: &str = "everturn_review_seconds";
const TOKENS: &str = "everturn_tokens_total";
const HELD: &str = "everturn_calls_held_total";
const ACTIVE: &str = "everturn_turns_active";
const WAITING: &str = "everturn_turns_waiting";
const SUBSCRIBERS: &str = "everturn_subscribers";

/// Describes the metrics.
pub(crate) fn describe() {
    let seconds = |name, text| describe_histogram!(name, Unit::Seconds, text);
    describe_counter!(STARTED, "Turns that began");
    describe_counter!(SEALED, "Turns that ended, by reason");
    describe_counter!(RETRIES, "Retries that were scheduled, by the category of the failure");
    describe_counter!(CALLS, "Provider calls, by model");
    describe_counter!(FAILED, "Provider calls that failed, by model and category");
    seconds(LATENCY, "Time to the first content or to the failure of a provider call, by model and outcome");
    describe_counter!(NO_REPORT, "Replies that came to nothing in turns that must end with a report");
    describe_counter!(COLLAPSED, "Turns whose remaining steps were cut to one by an attempt to report");
    seconds(
        WAITS,
        "Scheduled waits before retries, by the category of the failure; shared: put off because of another turn",
    );
    seconds(TURNS, "Time from the start of a turn to its end, waits included, by reason");
    seconds(TOOLS, "Time that tools ran, by tool and outcome");
    describe_counter!(REVIEWS, "Reviews of tool calls that ended, by verdict");
    describe_counter!(REVIEW_ATTEMPTS, "Calls to reviewers, by the verdict of their review");
    seconds(REVIEW_TIME, "Time from the start of a review to its end, waits included, by verdict");
    describe_counter!(TOKENS, "Tokens by model and type: input (cached ones included) and output");
    describe_counter!(HELD, "Calls that were put off because of what others found out, by model");
    describe_gauge!(ACTIVE, "Turns that run or wait");
    describe_gauge!(WAITING, "Turns that wait for a retry");
    describe_gauge!(SUBSCRIBERS, "Subscriptions to conversations");
    // Shown from the start, because a missing metric looks like a mistake on a dashboard.
    for name in [ACTIVE, WAITING, SUBSCRIBERS] {
        gauge!(name).increment(0.0);
    }
    let verdicts =
        [Verdict::Allowed, Verdict::Denied, Verdict::Failed, Verdict::TimedOut, Verdict::Cancelled];
    for verdict in verdicts.map(verdict_label) {
        counter!(REVIEWS, "verdict" => verdict).increment(0);
        counter!(REVIEW_ATTEMPTS, "verdict" => verdict).increment(0);
    }
}

/// Something to count once its event is durable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Count {
    Started,
    Retry(Category, u64),
    /// A wait because of what another turn learned, in milliseconds.
    Hold(u64),
    Sealed(String, Option<u64>),
    /// A tool ran.
    Tool {
        name: String,
        is_error: bool,
        ran_ms: u64,
    },
    /// A review ended, after this many attempts.
    Review {
        verdict: Verdict,
        attempts: u32,
        took_ms: Option<u64>,
    },
    /// The tokens that a call to this target used.
    Tokens(String, Usage),
    /// A reply failed in a turn that must end with a report.
    NoReport,
    /// An attempt to report cut the remaining steps to one.
    Collapsed,
}

impl Count {
    /// Returns what to count for an event.
    pub(crate) fn of(event: &EventBody) -> Option<Self> {
        Some(match event {
            EventBody::TurnStart { .. } => Self::Started,
            EventBody::ProviderRetry { shared: Some(true), delay_ms, .. } => Self::Hold(*delay_ms),
            EventBody::ProviderRetry { category, delay_ms, .. } => {
                Self::Retry(category.unwrap_or(Category::Unknown), *delay_ms)
            }
            // The number of different reasons that providers give is unbounded.
            EventBody::Done { reason: DoneReason::Other(_), duration_ms, .. } => {
                Self::Sealed("other".to_owned(), *duration_ms)
            }
            EventBody::Done { reason, duration_ms, .. } => {
                Self::Sealed(reason.as_str().to_owned(), *duration_ms)
            }
            // The number of tool names that models make up is unbounded; only tools that exist ran.
            EventBody::ToolResult { tool_name, is_error, duration_ms: Some(ran_ms), .. } => {
                Self::Tool { name: tool_name.clone(), is_error: *is_error, ran_ms: *ran_ms }
            }
            EventBody::ReviewCompleted { verdict, attempt_count, duration_ms, .. } => {
                Self::Review { verdict: *verdict, attempts: *attempt_count, took_ms: *duration_ms }
            }
            EventBody::ReportMissing { .. } => Self::NoReport,
            EventBody::StepsCollapsed { .. } => Self::Collapsed,
            _ => return None,
        })
    }

    /// Counts it.
    pub(crate) fn add(self) {
        match self {
            Self::Started => counter!(STARTED),
            Self::Retry(category, wait_ms) => {
                waited(category.as_str(), wait_ms);
                counter!(RETRIES, "category" => category.as_str())
            }
            Self::Hold(wait_ms) => return waited("shared", wait_ms),
            Self::Sealed(reason, ran_ms) => {
                if let Some(ran_ms) = ran_ms {
                    histogram!(TURNS, "reason" => reason.clone()).record(Duration::from_millis(ran_ms));
                }
                counter!(SEALED, "reason" => reason)
            }
            Self::Tool { name, is_error, ran_ms } => {
                let outcome = if is_error { "failed" } else { "done" };
                let ran = Duration::from_millis(ran_ms);
                return histogram!(TOOLS, "tool" => name, "outcome" => outcome).record(ran);
            }
            Self::Review { verdict, attempts, took_ms } => {
                let verdict = verdict_label(verdict);
                if let Some(took_ms) = took_ms {
                    histogram!(REVIEW_TIME, "verdict" => verdict).record(Duration::from_millis(took_ms));
                }
                counter!(REVIEW_ATTEMPTS, "verdict" => verdict).increment(attempts.into());
                counter!(REVIEWS, "verdict" => verdict)
            }
            Self::Tokens(model, usage) => {
                for (kind, count) in [("input", usage.input_tokens), ("output", usage.output_tokens)] {
                    counter!(TOKENS, "model" => model.clone(), "type" => kind).increment(count);
                }
                return;
            }
            Self::NoReport => counter!(NO_REPORT),
            Self::Collapsed => counter!(COLLAPSED),
        }
        .increment(1);
    }
}

fn verdict_label(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Allowed => "allowed",
        Verdict::Denied => "denied",
        Verdict::Failed => "failed",
        Verdict::TimedOut => "timed-out",
        Verdict::Cancelled => "cancelled",
        _ => "other",
    }
}

fn waited(category: &'static str, wait_ms: u64) {
    histogram!(WAITS, "category" => category).record(Duration::from_millis(wait_ms));
}

/// Records the time to the first content of a call, or to its failure.
pub(crate) fn provider_answered(model: &str, failure: Option<Category>, after_ms: u64) {
    let outcome = failure
        .map_or(SharedString::const_str("answered"), |failure| SharedString::const_str(failure.as_str()));
    if failure.is_some() {
        counter!(FAILED, "model" => model.to_owned(), "category" => outcome.clone()).increment(1);
    }
    let after = Duration::from_millis(after_ms);
    histogram!(LATENCY, "model" => model.to_owned(), "outcome" => outcome).record(after);
}

/// Counts a call that is not made, because its key is known to be rejected, so that an alert on refused keys lasts.
pub(crate) fn call_rejected(model: &str) {
    let category = SharedString::const_str(Category::Auth.as_str());
    counter!(FAILED, "model" => model.to_owned(), "category" => category).increment(1);
}

pub(crate) fn call_held(model: &str) {
    counter!(HELD, "model" => model.to_owned()).increment(1);
}

pub(crate) fn provider_called(model: &str) {
    counter!(CALLS, "model" => model.to_owned()).increment(1);
}

/// Counts in a gauge as long as it exists.
#[derive(Debug)]
pub(crate) struct GaugeGuard(Figure);

/// Which gauge. One byte, because a parked turn has two guards.
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

    /// Returns guards of this many parked turns, each active and waiting. Counted at once, because there may be a
    /// million.
    pub(crate) fn parked_turns(count: usize) -> impl Iterator<Item = (Self, Self)> {
        for figure in [Figure::Active, Figure::Waiting] {
            gauge!(figure.name()).increment(count as f64);
        }
        std::iter::repeat_with(|| (Self(Figure::Active), Self(Figure::Waiting))).take(count)
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
