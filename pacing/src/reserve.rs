//! What is kept for interactive calls, so that background calls do not use up a window just before they come, and for callers
//! that use less than their share.

use alloc::collections::BTreeMap;

use everturn_kernel::Millis;
use everturn_wire::CallerName;

use crate::{
    Priority,
    log::Log,
    queue::{Queue, Waiter},
    window::Window,
};

/// Over which time the demand is measured, in milliseconds.
const MEASURED_MS: u64 = 60_000;

/// The part of a window that is kept before anybody came: a tenth.
const USUAL_PART: u64 = 10;

/// How many equal shares of a window a caller uses before something is kept from it.
const GREEDY: u64 = 2;

/// The demand of interactive calls, and of each caller.
#[derive(Clone, Debug)]
pub(crate) struct Reserve {
    interactive: Log,
    callers: BTreeMap<Option<CallerName>, Log>,
    /// The slot in which the callers' calls were looked through last.
    rolled: u64,
}

impl Reserve {
    pub(crate) fn new() -> Self {
        Self { interactive: Log::new(MEASURED_MS), callers: BTreeMap::new(), rolled: 0 }
    }

    /// Forgets what was long ago.
    pub(crate) fn roll(&mut self, now: Millis) {
        let slot = self.interactive.slot(now);
        if core::mem::replace(&mut self.rolled, slot) != slot {
            self.callers.retain(|_, calls| calls.count(now) > 0);
        }
    }

    pub(crate) fn add(&mut self, waiter: &Waiter, now: Millis) {
        if waiter.priority == Priority::Interactive {
            self.interactive.add(now);
        }
        let calls = self.callers.entry(waiter.caller.clone());
        calls.or_insert_with(|| Log::new(MEASURED_MS)).add(now);
    }

    /// Returns how much of a window is kept from background calls. Generous, because interactive calls come in bursts;
    /// what is not used is given to background calls as the window ends. `amount`: the size of a call.
    pub(crate) fn of(&mut self, window: &Window, amount: u64, now: Millis) -> u64 {
        let calls = self.interactive.count(now).into();
        shrinking(expected(calls).saturating_mul(amount).max(window.limit() / USUAL_PART), window, now)
    }

    /// Returns how much of a window is kept from a caller that used more than its share of it: what others used lately that do not
    /// wait now, so that they need not wait for a whole window because of the greedy one.
    pub(crate) fn for_callers(
        &self,
        waiter: &Waiter,
        queue: &Queue,
        window: &Window,
        amount: u64,
        now: Millis,
    ) -> u64 {
        let own = self.callers.get(&waiter.caller).map_or(0, Log::last_count);
        let shares = u64::from(own).saturating_mul(amount).saturating_mul(self.callers.len() as u64);
        if self.callers.len() < 2 || shares < GREEDY.saturating_mul(window.limit()) {
            return 0;
        }
        let others =
            self.callers.iter().filter(|(caller, _)| **caller != waiter.caller && !queue.has(caller));
        let calls: u64 = others.map(|(_, calls)| u64::from(calls.last_count())).sum();
        shrinking(expected(calls).saturating_mul(amount), window, now)
    }
}

/// Returns how many calls to expect, generously, if there were so many lately.
fn expected(calls: u64) -> u64 {
    calls + calls.isqrt() * 2
}

/// Returns how much to keep of a window, which gets less as it ends.
fn shrinking(kept: u64, window: &Window, now: Millis) -> u64 {
    let left_ms = window.resets_at().since(now).min(MEASURED_MS);
    (kept.saturating_mul(left_ms) / MEASURED_MS).min(window.limit() / 2)
}
