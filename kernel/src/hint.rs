//! Hints: how long providers asked a turn to leave its targets alone.

use alloc::vec::Vec;

use everturn_wire::{Category, Failure};

use crate::{Millis, Seen, Target, millis::LONGEST_WAIT_MS};

/// The hints that still matter, at most one per target: the newest. Kept over the steps of a turn. A hint is forgotten
/// when its target is asked, because by then it has expired, or somebody decided to ask earlier.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints(pub(crate) Vec<Hint>);

/// A target's request to be left alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hint {
    pub(crate) target: Target,
    /// The time of the failure that said so.
    pub(crate) at: Millis,
    pub(crate) category: Category,
    pub(crate) wait_ms: u64,
}

impl Hints {
    /// Records the hint of a failure, if it has one. A history that is too long does not get shorter by waiting.
    pub(crate) fn note(&mut self, now: Millis, target: &Target, failure: &Failure) {
        self.0.retain(|hint| hint.left_ms(now) > 0);
        let wait_ms = failure.hint_ms.unwrap_or(0).min(LONGEST_WAIT_MS);
        let Failure { category, .. } = *failure;
        if wait_ms > 0 && category != Category::ContextOverflow {
            self.forget(target);
            self.0.push(Hint { target: target.clone(), at: now, category, wait_ms });
        }
    }

    pub(crate) fn forget(&mut self, target: &Target) {
        self.0.retain(|hint| !hint.target.is_same_request(target));
    }

    /// Returns the rest of a target's hint, in milliseconds.
    pub(crate) fn left_ms(&self, now: Millis, target: &Target) -> u64 {
        self.of(target).map_or(0, |hint| hint.left_ms(now))
    }

    /// Returns the failure to publish while a target's hint is waited for; `None` if there is nothing to wait for.
    pub(crate) fn failure(&self, now: Millis, target: &Target) -> Option<Failure> {
        let hint = self.of(target).filter(|hint| hint.left_ms(now) > 0)?;
        let left_ms = hint.left_ms(now);
        let message = alloc::format!("the provider asked for a wait of {} s more", left_ms.div_ceil(1000));
        Some(Failure { hint_ms: Some(left_ms), ..Failure::new(hint.category, true, message) })
    }

    /// Returns the hints about these targets as failures, for schedules.
    pub(crate) fn seen(&self, now: Millis, targets: &[Target]) -> Vec<Seen> {
        let seen = |(index, target)| {
            let Hint { at, category, wait_ms, .. } = *self.of(target).filter(|hint| hint.left_ms(now) > 0)?;
            Some(Seen { at, target: index, retries: 0, category, hint_ms: Some(wait_ms) })
        };
        targets.iter().enumerate().filter_map(seen).collect()
    }

    fn of(&self, target: &Target) -> Option<&Hint> {
        self.0.iter().find(|hint| hint.target.is_same_request(target))
    }
}

impl Hint {
    /// Returns the rest of the wait. A clock that was set back cannot make it longer than it was.
    fn left_ms(&self, now: Millis) -> u64 {
        self.at.plus(self.wait_ms).since(now).min(self.wait_ms)
    }
}
