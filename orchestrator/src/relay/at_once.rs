//! Refuses to wait for limits that last long.

use std::{sync::Arc, time::Duration};

use everturn_kernel::{Directive, GiveUp, NextCall, Question, Retry, Schedule};
use everturn_wire::Category;

/// Shortest wait that counts as long, in milliseconds, if the provider does not say that a quota is used up: 10 min.
pub(super) const LONG_MS: u64 = 10 * 60 * 1_000;

/// A schedule that does not wait for a used-up quota, or for longer than a provider's short limits last. Other targets
/// are asked as usual.
pub(super) struct AtOnce(pub(super) Arc<dyn Schedule + Send + Sync>);

impl Schedule for AtOnce {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        self.0.delay_for(retry)
    }

    fn decide(&self, question: &Question<'_>) -> Directive {
        let Question { failure, ledger, .. } = *question;
        let hint_ms = failure.hint_ms.unwrap_or(0);
        let is_long = failure.category == Category::QuotaExhausted || hint_ms >= LONG_MS;
        match self.0.decide(question) {
            Directive::Ask(ask) if is_long && (ask.target == ledger.target || !ask.wait.is_zero()) => {
                GiveUp::too_long(hint_ms, 0, failure).into()
            }
            directive => directive,
        }
    }

    fn next_target(&self, call: &NextCall<'_>) -> usize {
        self.0.next_target(call)
    }

    fn chooses_targets(&self) -> bool {
        self.0.chooses_targets()
    }

    fn ignores_holds(&self) -> bool {
        self.0.ignores_holds()
    }

    fn max_retries(&self) -> Option<u32> {
        self.0.max_retries()
    }
}

#[cfg(test)]
mod tests {
    use everturn_kernel::{Ledger, Millis, Target};
    use everturn_wire::Failure;

    use super::*;
    use crate::Patient;

    #[test]
    fn only_what_lasts_is_not_waited_for() {
        let waits = |category, hint_ms| {
            let failure = Failure { hint_ms, ..Failure::new(category, true, "no") };
            let (ledger, targets) = (Ledger::default(), [Target::default()]);
            let question = Question::new(Millis(0), &failure, &ledger, &targets);
            matches!(AtOnce(Arc::new(Patient)).decide(&question), Directive::Ask(_))
        };
        assert!(waits(Category::RateLimited, Some(59_000)));
        assert!(waits(Category::Overloaded, None));
        assert!(!waits(Category::RateLimited, Some(LONG_MS)));
        assert!(!waits(Category::QuotaExhausted, Some(1_000)));
    }
}
