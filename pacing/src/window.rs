//! A limit that the provider reports: how much is left of it now.

use alloc::collections::VecDeque;

use everturn_kernel::Millis;

use crate::{Ticket, Told, What};

/// Assumed length of a window, in milliseconds: what most providers set their limits for.
const USUAL_MS: u64 = 60_000;

/// How much must be used between two reports for them to tell whether and how fast it is refilled: they are rounded, and
/// arrive late.
const LEAST_USED: u64 = 3;

/// A limit that the provider reports.
#[derive(Clone, Debug)]
pub(crate) struct Window {
    pub(crate) what: What,
    limit: u64,
    /// What was left after the call `base` had been counted.
    remaining: u64,
    told_at: Millis,
    resets_at: Millis,
    /// The longest time that the window needed to be whole again, in milliseconds.
    period_ms: u64,
    base: Ticket,
    /// Calls made after `base`, which the report does not count yet.
    since: VecDeque<(Ticket, u64)>,
    spent: u64,
    /// The part of it that is kept for calls that have not been made.
    reserved: u64,
    /// If it is refilled bit by bit, rather than at once: how long that takes from empty to whole, in milliseconds.
    refill_ms: Option<u64>,
    /// What was missing at an earlier report, and when the window was to be whole again by it.
    anchor: (u64, Millis),
    /// What this process may use of it if it is not the only one: its part of what was left, less what it used.
    /// In thousandths, below zero if its part shrank after it was used.
    part: i64,
    parts: (u64, u64),
}

impl Window {
    /// Creates the window that the response to a call reports. `since`: what calls made after it use up.
    pub(crate) fn new(told: Told, base: Ticket, since: VecDeque<(Ticket, u64)>, now: Millis) -> Self {
        let spent = since.iter().map(|(_, amount)| amount).sum();
        Self {
            what: told.what,
            limit: told.limit.unwrap_or(told.remaining.saturating_add(1)).max(1),
            remaining: told.remaining,
            told_at: now,
            resets_at: now.plus(told.reset_ms),
            period_ms: told.reset_ms.max(USUAL_MS),
            base,
            since,
            spent,
            reserved: 0,
            refill_ms: None,
            anchor: (0, now),
            part: 0,
            parts: (0, 0),
        }
    }

    /// Keeps something for a call that a turn was let go to make: no report counts it before it is made.
    pub(crate) fn reserve(&mut self, amount: u64) {
        self.reserved = self.reserved.saturating_add(amount);
        self.spent = self.spent.saturating_add(amount);
        self.part = self.part.saturating_sub(thousandths(amount));
    }

    /// Takes back what was kept for a call that was not made.
    pub(crate) fn give_back(&mut self, amount: u64) {
        self.reserved = self.reserved.saturating_sub(amount);
        self.spent = self.spent.saturating_sub(amount);
        self.part = self.part.saturating_add(thousandths(amount));
    }

    /// The call that something was kept for is made.
    pub(crate) fn take_reserved(&mut self, ticket: Ticket, amount: u64) {
        self.give_back(amount);
        self.take(ticket, amount);
    }

    /// Counts a call.
    pub(crate) fn take(&mut self, ticket: Ticket, amount: u64) {
        self.since.push_back((ticket, amount));
        self.spent = self.spent.saturating_add(amount);
        self.part = self.part.saturating_sub(thousandths(amount));
    }

    /// Takes back what a call would have used up, because it was refused or never made.
    pub(crate) fn take_back(&mut self, ticket: Ticket) {
        if let Ok(at) = self.since.binary_search_by_key(&ticket, |(known, _)| *known)
            && let Some((_, amount)) = self.since.remove(at)
        {
            self.spent = self.spent.saturating_sub(amount);
            self.part = self.part.saturating_add(thousandths(amount));
        }
    }

    /// Corrects the size of a call that has not been counted by a report.
    pub(crate) fn correct(&mut self, ticket: Ticket, amount: u64) {
        if let Ok(at) = self.since.binary_search_by_key(&ticket, |(known, _)| *known)
            && let Some((_, known)) = self.since.get_mut(at)
        {
            self.spent = self.spent.saturating_sub(*known).saturating_add(amount);
            self.part = self.part.saturating_add(thousandths(*known)).saturating_sub(thousandths(amount));
            *known = amount;
        }
    }

    /// Takes note of the report in the response to a call. Reports overtake each other: that of the latest call counts.
    pub(crate) fn hear(&mut self, told: Told, ticket: Ticket, now: Millis) {
        if ticket < self.base {
            return;
        }
        let is_running = now < self.resets_at;
        let counted = |(known, _): &&(Ticket, u64)| *known <= ticket;
        let expected =
            self.remaining.saturating_sub(self.since.iter().take_while(counted).map(|(_, n)| n).sum());
        while let Some((known, amount)) = self.since.front().copied()
            && known <= ticket
        {
            self.since.pop_front();
            self.spent = self.spent.saturating_sub(amount);
        }
        self.limit = told.limit.map_or(self.limit.max(told.remaining), |limit| limit.max(1));
        let slack = (self.limit / 50).max(1);
        let resets_at = now.plus(told.reset_ms);
        if is_running && told.remaining > expected.saturating_add(slack) && now.since(self.told_at) > 0 {
            self.refill_ms.get_or_insert(self.period_ms);
        }
        self.find_refill(told, is_running, resets_at, now);
        let part = self.part.saturating_add(part_of(signed(self.refilled(now)), self.parts));
        // No process has more than there is.
        let most = thousandths(told.remaining) - thousandths(self.spent);
        self.part = part.min(self.whole(self.parts)).min(most);
        (self.remaining, self.told_at, self.base) = (told.remaining, now, ticket);
        self.resets_at = now.plus(told.reset_ms);
        self.period_ms = self.period_ms.max(told.reset_ms);
    }

    /// Learns whether it is refilled bit by bit: then the time until it is whole is in proportion to what is missing, and
    /// moves away as more is used.
    fn find_refill(&mut self, told: Told, is_running: bool, resets_at: Millis, now: Millis) {
        let missing = self.limit.saturating_sub(told.remaining);
        let (before, then) = self.anchor;
        let used = missing.saturating_sub(before);
        if !is_running || missing < before || now >= then {
            self.anchor = (missing, resets_at);
        } else if used >= LEAST_USED.max(self.limit / 10) {
            let moved_ms = resets_at.since(then) * missing;
            let expected_ms = told.reset_ms * used;
            if moved_ms.abs_diff(expected_ms) * 4 <= expected_ms {
                self.refill_ms = Some(told.reset_ms * self.limit / missing);
            }
            self.anchor = (missing, resets_at);
        }
    }

    /// Sets which part of it this process may use: `mine` of `all`.
    pub(crate) fn share(&mut self, parts: (u64, u64), now: Millis) {
        if parts == self.parts {
            return;
        }
        self.part = match self.parts {
            // What is under way comes out of this process' part: the others have as much under way.
            (0, 0) => {
                let left = part_of(thousandths(self.now(now)), parts) - thousandths(self.spent);
                left.max(-self.whole(parts))
            }
            was => self.part + self.whole(parts) - self.whole(was),
        };
        self.parts = parts;
    }

    /// Returns what is left by the last report, and refilled since.
    fn now(&self, now: Millis) -> u64 {
        self.remaining.saturating_add(self.refilled(now) / 1_000).min(self.limit)
    }

    /// Returns what was refilled since the last report, in thousandths: reports may come before a whole one is.
    fn refilled(&self, now: Millis) -> u64 {
        let of =
            |ms: u64| self.limit.saturating_mul(now.since(self.told_at).saturating_mul(1_000)) / ms.max(1);
        self.refill_ms.map_or(0, of)
    }

    /// Returns a part of the whole window, in thousandths.
    fn whole(&self, parts: (u64, u64)) -> i64 {
        part_of(thousandths(self.limit), parts)
    }

    /// Returns how much is left now, for all processes together.
    pub(crate) fn left(&self, now: Millis) -> u64 {
        self.now(now).saturating_sub(self.spent)
    }

    /// Whether this much is left now for this process. What exceeds the limit fits a whole window, and what exceeds this
    /// process' part a whole part.
    pub(crate) fn fits(&self, amount: u64, now: Millis) -> bool {
        let part = self.part.saturating_add(part_of(signed(self.refilled(now)), self.parts));
        let whole_part = self.whole(self.parts);
        let is_alone = self.parts.0 >= self.parts.1;
        // Of one that is refilled, what a part lacks comes soon.
        let lacking = if self.refills() { 0 } else { HALF };
        self.left(now) >= amount.min(self.limit)
            && (is_alone || part.saturating_add(lacking) >= thousandths(amount).min(whole_part))
    }

    /// Returns when this much is left, at the latest; `now` if it is. What exceeds the limit is let go when the window is
    /// whole, so that the provider can refuse it.
    pub(crate) fn room_at(&self, amount: u64, now: Millis) -> Millis {
        if self.fits(amount, now) {
            return now;
        }
        let amount = amount.min(self.limit);
        let Some(refill_ms) = self.refill_ms else { return self.resets_at };
        let missing = amount.saturating_add(self.spent).saturating_sub(self.now(now)).max(1);
        let (mine, all) = if self.parts.0 < self.parts.1 { self.parts } else { (1, 1) };
        now.plus((missing * refill_ms * all / mine.max(1)).div_ceil(self.limit).max(1))
    }

    /// Takes note that a reset has passed: what was made before it is no longer counted.
    pub(crate) fn roll(&mut self, now: Millis) {
        if now < self.resets_at {
            return;
        }
        let passed = now.since(self.resets_at) / self.period_ms + 1;
        self.resets_at = self.resets_at.plus(passed * self.period_ms);
        (self.remaining, self.told_at) = (self.limit, now);
        self.since.clear();
        self.spent = self.reserved;
        // Who used more than its part goes without the next one.
        let whole = self.whole(self.parts);
        self.part = whole + self.part.clamp(-whole, 0);
    }

    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    pub(crate) fn resets_at(&self) -> Millis {
        self.resets_at
    }

    pub(crate) fn refills(&self) -> bool {
        self.refill_ms.is_some()
    }
}

/// Returns this process' part of an amount.
fn part_of(whole: i64, (mine, all): (u64, u64)) -> i64 {
    let part = i128::from(whole) * i128::from(mine) / i128::from(all.max(1));
    i64::try_from(part).unwrap_or(i64::MAX)
}

/// Half of one, in thousandths: parts are rounded to the nearest.
const HALF: i64 = 500;

fn thousandths(amount: u64) -> i64 {
    signed(amount.saturating_mul(1_000))
}

fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests;
