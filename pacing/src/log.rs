//! How many calls were made lately.

use alloc::collections::VecDeque;

use everturn_kernel::Millis;

/// Number of slots into which a period is divided.
const SLOTS: u64 = 64;

/// Counts the calls of the last period, in slots.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    period_ms: u64,
    /// The slots with calls, oldest first: number and calls.
    slots: VecDeque<(u64, u32)>,
    count: u32,
}

impl Log {
    pub(crate) fn new(period_ms: u64) -> Self {
        Self { period_ms, slots: VecDeque::new(), count: 0 }
    }

    /// Returns the number of a slot. What is counted changes only from one to the next.
    pub(crate) fn slot(&self, at: Millis) -> u64 {
        at.0 * SLOTS / self.period_ms
    }

    /// Forgets the calls that are older than the period.
    fn trim(&mut self, now: Millis) {
        let oldest = self.slot(now).saturating_sub(SLOTS);
        while let Some((slot, calls)) = self.slots.front().copied()
            && slot < oldest
        {
            self.slots.pop_front();
            self.count -= calls;
        }
    }

    pub(crate) fn add(&mut self, now: Millis) {
        self.trim(now);
        let slot = self.slot(now);
        match self.slots.back_mut() {
            Some((last, calls)) if *last >= slot => *calls += 1,
            _ => self.slots.push_back((slot, 1)),
        }
        self.count += 1;
    }

    /// Takes back a call that was made at this time, because it was refused.
    pub(crate) fn take_back(&mut self, at: Millis) {
        let slot = self.slot(at);
        if let Some((_, calls)) =
            self.slots.iter_mut().rev().find(|(number, calls)| *number <= slot && *calls > 0)
        {
            *calls -= 1;
            self.count -= 1;
        }
    }

    pub(crate) fn count(&mut self, now: Millis) -> u32 {
        self.trim(now);
        self.count
    }

    /// Returns what [`count`](Self::count) returned last, and what was added since.
    pub(crate) fn last_count(&self) -> u32 {
        self.count
    }

    /// Returns when at most this many calls are left in the period.
    pub(crate) fn down_to(&mut self, most: u32, now: Millis) -> Millis {
        self.trim(now);
        let mut left = self.count;
        for (slot, calls) in &self.slots {
            if left <= most {
                break;
            }
            left -= calls;
            if left <= most {
                // The slot after it is the first that no longer counts it.
                return Millis(((slot + SLOTS + 1) * self.period_ms).div_ceil(SLOTS)).max(now);
            }
        }
        now
    }
}
