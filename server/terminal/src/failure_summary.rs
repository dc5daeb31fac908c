//! What was done about the failure that ended a turn, and what a person can do now.

use std::time::Duration;

use crate::wording;
use everturn_wire::{ErrorReport, RetryOutcome};

/// The details that come with a turn's error.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FailureSummary {
    retries: Option<u32>,
    waited: Duration,
    outcome: Option<RetryOutcome>,
    detail: Option<String>,
    advice: Option<String>,
}

impl FailureSummary {
    pub(crate) fn of(report: &ErrorReport) -> Self {
        Self {
            retries: report.retries,
            waited: Duration::from_millis(report.waited_ms.unwrap_or(0)),
            outcome: report.outcome,
            detail: report.detail.clone(),
            advice: report.advice.clone(),
        }
    }

    /// How often the failed step was retried; `None` if unknown.
    pub(crate) fn retries(&self) -> Option<u32> {
        self.retries
    }

    /// How often and for how long the step was retried; `None` if it was not.
    pub(crate) fn tried(&self) -> Option<String> {
        let retries = wording::retries(self.retries.unwrap_or(0));
        let waited = wording::span(u64::try_from(self.waited.as_millis()).unwrap_or(u64::MAX));
        match self.outcome {
            _ if self.retries.unwrap_or(0) == 0 => None,
            Some(RetryOutcome::Exhausted | RetryOutcome::TooLong) => {
                Some(format!("Gave up after {retries} over {waited}."))
            }
            _ => Some(format!("This came after {retries} over {waited}; waiting does not help.")),
        }
    }

    /// Why it was not retried again, and what a person can do, one line each.
    pub(crate) fn next(&self) -> Vec<String> {
        let not_again = self.detail.as_ref().map(|detail| format!("Not tried again: {detail}."));
        not_again.into_iter().chain(self.advice.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_what_was_tried_and_what_to_do() {
        let gave_up = FailureSummary {
            retries: Some(21),
            waited: Duration::from_secs(27_105),
            outcome: Some(RetryOutcome::Exhausted),
            detail: None,
            advice: Some("Wait.".to_owned()),
        };
        assert_eq!(gave_up.tried().unwrap(), "Gave up after 21 retries over 7 h 32 min.");
        assert_eq!(gave_up.next(), ["Wait."]);
        let detail = Some("the next attempt would be in 61 s, the budget leaves 60 s".to_owned());
        let too_long =
            FailureSummary { outcome: Some(RetryOutcome::TooLong), detail, ..FailureSummary::default() };
        assert_eq!(too_long.tried(), None);
        let said = "Not tried again: the next attempt would be in 61 s, the budget leaves 60 s.";
        assert_eq!(too_long.next(), [said]);
        let refused = FailureSummary { retries: Some(1), outcome: None, ..gave_up };
        assert!(refused.tried().unwrap().starts_with("This came after 1 retry over 7 h 32 min; w"));
    }
}
