//! A window of a provider's limit on requests: how many more turns may ask before it ends.

use everturn_kernel::{Limits, Millis, What};

/// Assumed length of a window until an answer reports it, in milliseconds.
const ASSUMED_MS: u64 = 60_000;

/// What is left of a limit on requests by the headers of a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestQuota {
    pub(super) limit: Option<u32>,
    pub(super) remaining: u32,
    pub(super) reset_ms: u64,
}

impl RequestQuota {
    pub(super) fn of(limits: &Limits) -> Option<Self> {
        let told = limits.0.iter().find(|told| told.what == What::Requests)?;
        let count = |count| u32::try_from(count).unwrap_or(u32::MAX);
        let (limit, remaining) = (told.limit.map(count), count(told.remaining));
        Some(Self { limit, remaining, reset_ms: told.reset_ms })
    }
}

/// A window of a limit on requests.
#[derive(Debug)]
pub(super) struct Window {
    /// How many more turns may ask.
    left: u32,
    /// How many turns may ask in the next window: at least one, whose answer reports what is left.
    limit: u32,
    ends_at: Millis,
    /// Whether its end is a guess.
    is_assumed: bool,
    /// How many turns it put off.
    put_off: u32,
}

impl Window {
    /// Returns the window that an answer reports.
    pub(super) fn told(quota: RequestQuota, now: Millis) -> Self {
        let RequestQuota { limit, remaining, reset_ms } = quota;
        // At least the answered request was allowed.
        let limit = limit.unwrap_or(remaining.saturating_add(1)).max(1);
        Self { left: remaining, limit, ends_at: now.plus(reset_ms), is_assumed: false, put_off: 0 }
    }

    /// Returns a full window about which nothing else is known yet.
    pub(super) fn assumed(limit: u32, now: Millis) -> Self {
        let limit = limit.max(1);
        Self { left: limit, limit, ends_at: now.plus(ASSUMED_MS), is_assumed: true, put_off: 0 }
    }

    /// Updates the window from another answer. Answers overtake each other and do not count calls in progress, so what
    /// is left never grows before the window ends.
    pub(super) fn hear(&mut self, quota: RequestQuota, now: Millis) {
        let told = Self::told(quota, now);
        let limit = quota.limit.map_or(self.limit, |_| told.limit);
        if now >= self.ends_at {
            *self = Self { limit, ..told };
            return;
        }
        self.left = self.left.min(told.left);
        self.limit = limit;
        if self.is_assumed {
            (self.ends_at, self.is_assumed) = (told.ends_at, false);
        }
    }

    /// Whether the window ended, and had room for all turns.
    pub(super) fn sufficed(&self, now: Millis) -> bool {
        now >= self.ends_at && self.put_off == 0
    }

    /// Lets one more turn ask, if the window has room. Returns whether it has.
    pub(super) fn take(&mut self, now: Millis) -> bool {
        if now >= self.ends_at {
            *self = Self::assumed(self.limit, now);
        }
        let may_ask = self.left > 0;
        self.left = self.left.saturating_sub(1);
        may_ask
    }

    /// Puts one more turn off until the next window. Returns how many wait for it.
    pub(super) fn put_off(&mut self) -> u32 {
        self.put_off = self.put_off.saturating_add(1);
        self.put_off
    }

    pub(super) fn ends_at(&self) -> Millis {
        self.ends_at
    }
}
