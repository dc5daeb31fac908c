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
        if shares < GREEDY.saturating_mul(window.limit()) {
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

#[cfg(test)]
mod tests {
    use alloc::collections::VecDeque;

    use super::*;
    use crate::{Size, Ticket, Told, What};

    const START: Millis = Millis(1_000_000);

    fn waiter(caller: &str, priority: Priority) -> Waiter {
        let caller = CallerName::parse(caller).ok();
        Waiter { turn: "turn".into(), caller, priority, size: Size::default() }
    }

    /// What is known after so many calls of callers.
    fn after(calls: &[(&str, Priority, usize)]) -> Reserve {
        let mut reserve = Reserve::new();
        for (caller, priority, calls) in calls {
            (0..*calls).for_each(|_| reserve.add(&waiter(caller, *priority), START));
        }
        reserve
    }

    /// A limit of 102 that ends in a minute.
    fn window() -> Window {
        let told = Told { what: What::Requests, limit: Some(102), remaining: 102, reset_ms: MEASURED_MS };
        Window::new(told, Ticket(1), VecDeque::new(), START)
    }

    #[test]
    fn a_tenth_or_what_interactive_calls_may_need_is_kept_from_others_and_at_most_half() {
        let kept = |calls, amount, after_ms| {
            let (interactive, background) = (Priority::Interactive, Priority::Background);
            let mut reserve = after(&[("ann", interactive, calls), ("ann", background, 30)]);
            reserve.of(&window(), amount, START.plus(after_ms))
        };
        assert_eq!([kept(0, 1, 0), kept(0, 1, 30_000)], [10, 5], "less as it ends");
        assert_eq!([kept(25, 1, 0), kept(16, 2, 0), kept(25, 2, 0)], [25 + 2 * 5, (16 + 2 * 4) * 2, 51]);
    }

    #[test]
    fn a_caller_that_used_twice_its_share_leaves_what_others_used_who_do_not_wait() {
        let kept = |own, amount, waiting: &str, after_ms| {
            let of = |caller, calls| (caller, Priority::Interactive, calls);
            let mut reserve = after(&[of("ann", own), of("bob", 9), of("eve", 4)]);
            let (mut queue, now) = (Queue::default(), START.plus(after_ms));
            queue.wait(waiter(waiting, Priority::Interactive), START);
            reserve.roll(now);
            reserve.for_callers(&waiter("ann", Priority::Interactive), &queue, &window(), amount, now)
        };
        assert_eq!([kept(67, 1, "ann", 0), kept(68, 1, "ann", 0)], [0, 13 + 2 * 3]);
        assert_eq!(kept(34, 2, "ann", 0), (13 + 2 * 3) * 2);
        assert_eq!(kept(68, 1, "bob", 0), 4 + 2 * 2);
        assert_eq!(kept(68, 1, "ann", 30_000), 19 / 2);
    }

    #[test]
    fn callers_are_forgotten_after_a_minute() {
        let mut reserve = after(&[("ann", Priority::Background, 1)]);
        let known = [60_000, 61_000].map(|after_ms| {
            reserve.roll(START.plus(after_ms));
            reserve.callers.len()
        });
        assert_eq!(known, [1, 0]);
    }
}
