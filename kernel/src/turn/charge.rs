//! Which account a wait is charged to.

use alloc::format;

use everturn_wire::RetryOutcome;

use super::Turn;
use crate::{
    Ask, Budget, GiveUp, Ledger, Millis,
    phase::Charge,
    span::{at_least, at_most},
};

/// Waits allowed to a step for the report after its budget was spent, in milliseconds.
const GRACE_MS: u64 = 2 * 60 * 1_000;

impl Charge {
    pub(super) fn of(ask: &Ask) -> Self {
        if ask.is_wall { Self::Wall } else { Self::Budget }
    }

    /// Returns the sum of the waits that are charged like this.
    pub(super) fn sum(self, ledger: &mut Ledger) -> Option<&mut u64> {
        match self {
            Self::Budget => Some(&mut ledger.waited_ms),
            Self::Wall => Some(&mut ledger.walled_ms),
            Self::Nothing => None,
        }
    }
}

impl Turn {
    /// Returns the budget of a step.
    pub(super) fn budget(&self, ledger: &Ledger) -> Budget {
        ledger.budget.unwrap_or(self.settings.budget)
    }

    /// Returns the budget of a step that only allows the report. If nothing is left, it has a grace, unless waits are not
    /// allowed at all.
    pub(super) fn budget_of_report(&self, now: Millis, ledger: &Ledger) -> Option<Budget> {
        let budget = self.budget(ledger);
        let is_spent = budget.left(now, ledger.waited_ms) == Some(0) && budget.max_wait_ms != Some(0);
        if is_spent { Some(budget.with_left(now, ledger.waited_ms, GRACE_MS)) } else { ledger.budget }
    }

    /// Whether the budget has room for a wait. Even a wait that is not charged to it must end before its deadline.
    pub(super) fn afford(
        &self,
        now: Millis,
        ledger: &Ledger,
        delay_ms: u64,
        charge: Charge,
    ) -> Result<(), GiveUp> {
        let budget = self.budget(ledger);
        let budget = if charge == Charge::Budget { budget } else { Budget { max_wait_ms: None, ..budget } };
        match budget.left(now, ledger.waited_ms) {
            Some(left_ms) if delay_ms > left_ms => {
                let (needed, left) = (at_least(delay_ms), at_most(left_ms));
                let detail = format!("the next attempt would be in {needed}, the budget leaves {left}");
                Err(GiveUp { outcome: RetryOutcome::TooLong, detail: Some(detail) })
            }
            _ => Ok(()),
        }
    }
}
