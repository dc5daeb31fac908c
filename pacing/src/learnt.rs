//! A limit on the rate that the provider does not report, learnt from refusals.

use alloc::vec::Vec;

use everturn_kernel::Millis;

use crate::{log::Log, search::Search};

/// Periods that limits are commonly set for, in milliseconds, shortest first.
const PERIODS_MS: [u64; 3] = [1_000, 10_000, 60_000];

/// What is known of a limit that is not reported: so many calls in a period. Assumes the shortest period that no refusal
/// has contradicted.
#[derive(Clone, Debug)]
pub(crate) struct Learnt {
    logs: Vec<Log>,
    limit: Option<Limit>,
    /// The limit before the last refusal.
    before: Option<Limit>,
}

#[derive(Clone, Copy, Debug)]
struct Limit {
    /// Index of the period.
    period: usize,
    calls: Search,
    /// When it was learnt.
    since: Millis,
    /// When the next call may be made: calls are spread over the period, because some providers refuse bursts.
    next_at: Millis,
    /// When a whole period without a refusal ends.
    calm_at: Millis,
    /// Whether calls were put off in this period.
    is_binding: bool,
    /// Whether a whole period passed without a refusal while the limit held calls back.
    is_confirmed: bool,
}

impl Limit {
    /// Returns the time between calls, in milliseconds.
    fn spacing_ms(&self) -> u64 {
        PERIODS_MS[self.period] / u64::from(self.calls.value())
    }

    /// Returns how much of a pause counts: a tenth of the period.
    fn burst_ms(&self) -> u64 {
        PERIODS_MS[self.period] / 10
    }
}

impl Learnt {
    pub(crate) fn new() -> Self {
        Self { logs: PERIODS_MS.into_iter().map(Log::new).collect(), limit: None, before: None }
    }

    pub(crate) fn add(&mut self, now: Millis) {
        self.logs.iter_mut().for_each(|log| log.add(now));
        if let Some(limit) = &mut self.limit {
            limit.next_at =
                limit.next_at.max(Millis(now.0.saturating_sub(limit.burst_ms()))).plus(limit.spacing_ms());
        }
    }

    /// A call made at this time was not accepted. A limit that was learnt while it ran has counted it; if it counted no other, it is
    /// forgotten.
    pub(crate) fn take_back(&mut self, at: Millis) {
        self.logs.iter_mut().for_each(|log| log.take_back(at));
        let Some(limit) = self.limit.filter(|limit| !limit.is_confirmed && at <= limit.since) else { return };
        if self.logs[limit.period].count(limit.since) == 0 {
            self.limit = self.before.take();
        }
    }

    /// Returns how many more calls may be made now; `None` = no limit is known.
    pub(crate) fn left(&mut self, now: Millis) -> Option<u32> {
        self.calm_down(now);
        let limit = self.limit?;
        if now < limit.next_at {
            return Some(0);
        }
        Some(limit.calls.value().saturating_sub(self.logs[limit.period].count(now)))
    }

    /// Returns when there is room for one more call after `others`.
    pub(crate) fn room_at(&mut self, others: u32, now: Millis) -> Millis {
        let Some(limit) = self.limit.as_mut() else { return now };
        limit.is_binding = true;
        let log = &mut self.logs[limit.period];
        let calls = limit.calls.value();
        let spread = limit.next_at.max(now).plus(u64::from(others) * limit.spacing_ms());
        log.down_to(calls.saturating_sub(1 + others % calls), now).max(spread)
    }

    /// Learns from a refusal of a call made at `asked_at`, which is no longer counted. Returns when there is room again.
    pub(crate) fn refused(&mut self, hint_ms: Option<u64>, now: Millis) -> Option<Millis> {
        let counts: Vec<u32> = self.logs.iter_mut().map(|log| log.count(now)).collect();
        let first = match self.limit {
            // The provider allows a little less than it did.
            Some(limit) if limit.is_confirmed => limit.period,
            Some(limit) => (limit.period + 1).min(PERIODS_MS.len() - 1),
            None => 0,
        };
        // A limit ends within its period.
        let fits = |n: &usize| counts[*n] > 0 && hint_ms.is_none_or(|ms| ms <= PERIODS_MS[*n]);
        let period = (first..counts.len()).find(fits)?;
        let calls = match self.limit {
            Some(Limit { period: known, mut calls, is_confirmed, .. }) if known == period && is_confirmed => {
                calls.refused_at(counts[period]);
                calls
            }
            _ => Search::at(counts[period]),
        };
        self.before = self.limit;
        let is_confirmed = self.limit.is_some_and(|limit| limit.period == period && limit.is_confirmed);
        let calm_at = now.plus(PERIODS_MS[period]);
        let next_at = now;
        self.limit =
            Some(Limit { period, calls, since: now, next_at, calm_at, is_binding: false, is_confirmed });
        Some(self.room_at(0, now))
    }

    /// Lets the limit grow after each period in which it held calls back and none was refused.
    fn calm_down(&mut self, now: Millis) {
        let Some(limit) = &mut self.limit else { return };
        if now < limit.calm_at {
            return;
        }
        let count = self.logs[limit.period].count(now);
        if limit.is_binding && count.saturating_mul(4) >= limit.calls.value().saturating_mul(3) {
            limit.calls.was_calm();
            limit.is_confirmed = true;
        }
        limit.is_binding = false;
        limit.calm_at = now.plus(PERIODS_MS[limit.period]);
    }

    /// Until when a further call can hardly be accepted if the limit is why one made at this time was refused; `None` if that was to
    /// be expected.
    pub(crate) fn no_room_before(&self, made_at: Millis) -> Option<Millis> {
        let limit = self.limit.filter(|limit| !limit.calls.is_tried())?;
        Some(made_at.plus(limit.spacing_ms() / 2))
    }

    /// The last refusal said nothing about the limit.
    pub(crate) fn undo(&mut self) {
        self.limit = self.before.take().or(self.limit);
    }

    /// Forgets the limit.
    pub(crate) fn forget(&mut self) {
        self.limit = None;
    }

    #[cfg(test)]
    pub(crate) fn limit(&self) -> Option<(u64, u32)> {
        self.limit.map(|limit| (PERIODS_MS[limit.period], limit.calls.value()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_minute_is_found_after_two_contradictions() {
        let mut learnt = Learnt::new();
        for n in 0..60 {
            learnt.add(Millis(10_000 + n * 50));
        }
        assert_eq!(
            learnt.refused(None, Millis(13_000)),
            Some(Millis(13_016)),
            "a second was the first guess"
        );
        assert_eq!(learnt.limit().map(|(period, _)| period), Some(1_000));
        let at = learnt.refused(None, Millis(14_100)).expect("a guess");
        assert!((20_000..20_400).contains(&at.0), "{at:?}: ten seconds were the second");
        let at = learnt.refused(None, at.plus(100)).expect("a guess");
        assert!((70_000..71_000).contains(&at.0), "{at:?}: then a minute");
        assert_eq!(learnt.limit(), Some((60_000, 60)));
        assert_eq!(learnt.left(Millis(74_000)), Some(60));
    }

    #[test]
    fn a_hint_points_to_the_period() {
        let mut learnt = Learnt::new();
        (0..60).for_each(|n| learnt.add(Millis(10_000 + n * 50)));
        learnt.refused(Some(57_000), Millis(13_000));
        assert_eq!(learnt.limit(), Some((60_000, 60)));
    }
}
