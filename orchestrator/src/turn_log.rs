//! What the log tells about a turn: its waits and moves, and how they ended. Neither content nor messages of providers.

use everturn_kernel::Turn;
use everturn_wire::{
    Because, Category, ConversationId, EventBody, ForcedBy, RetryOutcome, TargetRole, TurnId, Verdict,
};

/// A line of the log.
#[derive(Debug)]
pub(crate) enum LogLine {
    Waits {
        target: Option<String>,
        category: Category,
        attempt: u32,
        until: u64,
        is_shared: bool,
        because: Option<Because>,
    },
    Moves {
        from: String,
        to: String,
        role: TargetRole,
    },
    Restored {
        to: String,
    },
    ReportForced(ForcedBy),
    StepsCollapsed {
        from: u32,
        to: u32,
    },
    ReportMissing {
        attempt: u32,
        max_attempts: u32,
    },
    Recovered,
    Cancelled,
    GaveUp(Category),
    NotReviewed {
        verdict: Verdict,
        attempts: u32,
    },
}

impl LogLine {
    /// Returns the line for an event; `None` = it is not worth one.
    pub(crate) fn of(event: &EventBody) -> Option<Self> {
        Some(match event {
            EventBody::ProviderRetry {
                delay_ms: 1..,
                target,
                category,
                attempt,
                next_at,
                shared,
                because,
                ..
            } => Self::Waits {
                target: target.clone(),
                category: category.unwrap_or(Category::Unknown),
                attempt: *attempt,
                until: next_at.unwrap_or_default(),
                is_shared: shared.unwrap_or_default(),
                because: *because,
            },
            EventBody::TargetSwitched { from, to, role, .. } => {
                Self::Moves { from: from.clone(), to: to.clone(), role: *role }
            }
            EventBody::TargetRestored { to, .. } => Self::Restored { to: to.clone() },
            EventBody::ReportForced { by, .. } => Self::ReportForced(*by),
            EventBody::StepsCollapsed { from, to, .. } => Self::StepsCollapsed { from: *from, to: *to },
            EventBody::ReportMissing { attempt, max_attempts, .. } => {
                Self::ReportMissing { attempt: *attempt, max_attempts: *max_attempts }
            }
            EventBody::RetryEnded { outcome: RetryOutcome::Recovered, .. } => Self::Recovered,
            EventBody::RetryEnded { outcome: RetryOutcome::Cancelled, .. } => Self::Cancelled,
            EventBody::Error(report) => Self::GaveUp(report.category.unwrap_or(Category::Unknown)),
            EventBody::ReviewCompleted {
                verdict: verdict @ (Verdict::Failed | Verdict::TimedOut),
                attempt_count,
                ..
            } => Self::NotReviewed { verdict: *verdict, attempts: *attempt_count },
            _ => return None,
        })
    }

    /// Writes the line. `calls`: how many calls the turn has made. `model`: its model or route.
    pub(crate) fn write(&self, id: &ConversationId, turn_id: &TurnId, turn: &Turn, model: &str, calls: u32) {
        let (conversation, turn_id, waited) = (id.as_str(), turn_id.as_str(), seconds(turn.waited_ms()));
        match self {
            Self::Waits { target, category, attempt, until, is_shared, because } => {
                let (target, category) = (target.as_deref().unwrap_or(model), category.as_str());
                let (until, shared) = (moment(*until), *is_shared);
                let because = because.map(tracing::field::display);
                tracing::info!(
                    conversation,
                    turn = turn_id,
                    target,
                    category,
                    attempt,
                    until,
                    shared,
                    because,
                    "a turn waits"
                );
            }
            Self::Moves { from, to, role } => {
                let role = format!("{role:?}").to_lowercase();
                tracing::info!(
                    conversation,
                    turn = turn_id,
                    from,
                    to,
                    role,
                    "a turn moves to another target"
                );
            }
            Self::Restored { to } => {
                tracing::info!(conversation, turn = turn_id, to, "a turn is back at its preferred target");
            }
            Self::ReportForced(by) => {
                tracing::info!(conversation, turn = turn_id, ?by, "a turn must report now");
            }
            Self::StepsCollapsed { from, to } => {
                tracing::info!(
                    conversation,
                    turn = turn_id,
                    from,
                    to,
                    "an attempt to report left one more step"
                );
            }
            Self::ReportMissing { attempt, max_attempts } => {
                tracing::warn!(
                    conversation,
                    turn = turn_id,
                    attempt,
                    max_attempts,
                    "a reply without a final report"
                );
            }
            Self::Recovered => {
                let target = turn.target().map_or(model, |target| &target.name);
                tracing::info!(conversation, turn = turn_id, target, calls, waited, "a turn recovered");
            }
            Self::Cancelled => {
                tracing::info!(
                    conversation,
                    turn = turn_id,
                    calls,
                    waited,
                    "the retries of a turn were ended"
                );
            }
            Self::GaveUp(category) => {
                let category = category.as_str();
                tracing::info!(conversation, turn = turn_id, category, calls, waited, "a turn gave up");
            }
            Self::NotReviewed { verdict, attempts } => {
                tracing::info!(
                    conversation,
                    turn = turn_id,
                    ?verdict,
                    attempts,
                    "a review came to no decision"
                );
            }
        }
    }
}

/// Formats a duration in seconds.
fn seconds(ms: u64) -> String {
    format!("{}.{:03}s", ms / 1_000, ms % 1_000)
}

/// Formats a moment in UTC, such as `2026-11-24T09:30:05Z`.
fn moment(epoch_ms: u64) -> String {
    let seconds = epoch_ms / 1_000;
    let (mut days, of_day) = (seconds / 86_400, seconds % 86_400);
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    // Beyond the year 9999 nobody waits.
    while year < 9999 && days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let lengths = [31, 28 + u64::from(is_leap(year)), 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut month = 1;
    for length in lengths {
        if days < length || month == 12 {
            break;
        }
        (days, month) = (days - length, month + 1);
    }
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{:02}T{hour:02}:{minute:02}:{second:02}Z", days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_a_date_and_a_time() {
        for (epoch_ms, expected) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400_000, "2000-02-29T00:00:00Z"),
            (1_700_000_000_999, "2023-11-14T22:13:20Z"),
            (1_735_689_599_000, "2024-12-31T23:59:59Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(moment(epoch_ms), expected);
        }
    }
}
