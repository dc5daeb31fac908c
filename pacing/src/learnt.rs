//! A limit on the rate that the provider does not report, learnt from refusals.

use alloc::vec::Vec;

use everturn_kernel::Millis;
use serde::{Deserialize, Serialize};

use crate::{log::Log, search::Search};

/// Periods that limits are commonly set for, in milliseconds, shortest first.
const PERIODS_MS: [u64; 3] = [1_000, 10_000, 60_000];

/// How many rounds ten seconds have after a hint of up to a second: the limit is likely a bucket that is refilled soon, so the calls
/// accepted in ten seconds are too few.
const QUICK: u64 = 2;

/// The most calls of another process that are believed at once.
const MOST_TOLD: u32 = 10_000;

/// How much later than the limit that is known one of another process was learnt, in milliseconds: it may be told again.
const TOLD_MS: u64 = 2_000;

/// What a process tells others of a target's limit that is not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lately {
    /// Calls made since its last report, minus those that were refused.
    pub made: u32,
    /// The limit of all processes together that it learnt last.
    pub rate: Option<Rate>,
}

/// A limit that was learnt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rate {
    /// How many calls may be made in a period.
    pub calls: u32,
    /// The length of the period, in milliseconds.
    pub period_ms: u64,
    /// How long ago a refusal taught it, in milliseconds.
    pub ago_ms: u64,
    /// How long a round is, in milliseconds: after each without a refusal, the limit may grow.
    pub round_ms: u64,
    /// Whether a round passed since without a refusal.
    pub is_confirmed: bool,
}

/// What is known of a limit that is not reported: so many calls in a period. Assumes the shortest period that no refusal
/// has contradicted.
#[derive(Clone, Debug)]
pub(crate) struct Learnt {
    logs: Vec<Log>,
    limit: Option<Limit>,
    /// The limit before the last refusal.
    before: Option<Limit>,
    /// Calls that other processes have not been told of; negative if more were refused than made since.
    untold: i64,
    /// This process's part of the limit, and all parts.
    share: (u64, u64),
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
    /// How long a round is, in milliseconds: after each without a refusal, the limit may grow.
    round_ms: u64,
    /// When a round without a refusal ends.
    calm_at: Millis,
    /// Whether calls were put off in this period.
    is_binding: bool,
    /// Whether a whole period passed without a refusal while the limit held calls back.
    is_confirmed: bool,
}

impl Limit {
    /// Returns the time between this process's calls, in milliseconds.
    fn spacing_ms(&self, (mine, all): (u64, u64)) -> u64 {
        PERIODS_MS[self.period].saturating_mul(all) / u64::from(self.calls.value()).saturating_mul(mine)
    }

    /// Returns how much of a pause counts: a tenth of the period.
    fn burst_ms(&self) -> u64 {
        PERIODS_MS[self.period] / 10
    }
}

impl Learnt {
    pub(crate) fn new() -> Self {
        let logs = PERIODS_MS.into_iter().map(Log::new).collect();
        Self { logs, limit: None, before: None, untold: 0, share: (1, 1) }
    }

    pub(crate) fn set_share(&mut self, share: (u64, u64)) {
        self.share = share;
    }

    pub(crate) fn add(&mut self, now: Millis) {
        self.untold += 1;
        self.logs.iter_mut().for_each(|log| log.add(now));
        if let Some(limit) = &mut self.limit {
            let spacing_ms = limit.spacing_ms(self.share);
            let burst_ms = limit.burst_ms();
            limit.next_at = limit.next_at.max(Millis(now.0.saturating_sub(burst_ms))).plus(spacing_ms);
        }
    }

    /// Returns what others have to be told.
    pub(crate) fn lately(&mut self, now: Millis) -> Lately {
        let made = u32::try_from(self.untold).unwrap_or(0);
        self.untold -= i64::from(made);
        let rate = self.limit.map(|limit| Rate {
            calls: limit.calls.value(),
            period_ms: PERIODS_MS[limit.period],
            ago_ms: now.since(limit.since),
            round_ms: limit.round_ms,
            is_confirmed: limit.is_confirmed,
        });
        Lately { made, rate }
    }

    /// Another process told this. The limit that was learnt last counts.
    pub(crate) fn lately_elsewhere(&mut self, lately: Lately, now: Millis) {
        for _ in 0..lately.made.min(MOST_TOLD) {
            self.logs.iter_mut().for_each(|log| log.add(now));
        }
        let Some(Rate { calls, period_ms, ago_ms, round_ms, is_confirmed }) = lately.rate else { return };
        let Some(period) = PERIODS_MS.iter().position(|ms| *ms == period_ms) else { return };
        let since = Millis(now.0.saturating_sub(ago_ms));
        if self.limit.is_some_and(|known| since.0 <= known.since.0 + TOLD_MS) {
            return;
        }
        let calls = match self.limit {
            Some(known) if known.period == period => known.calls.lowered_to(calls),
            _ => Search::at(calls),
        };
        self.before = self.limit;
        let round_ms = round_ms.clamp(period_ms / QUICK, period_ms);
        let next_at = self.limit.map_or(now, |known| known.next_at);
        let (calm_at, is_binding) = (since.plus(round_ms).max(now), false);
        self.limit =
            Some(Limit { period, calls, since, next_at, round_ms, calm_at, is_binding, is_confirmed });
    }

    /// A call made at this time was not accepted. A limit that was learnt while it ran has counted it; if it counted no other, it is
    /// forgotten.
    pub(crate) fn take_back(&mut self, at: Millis) {
        self.untold -= 1;
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
        let spread = limit.next_at.max(now).plus(u64::from(others) * limit.spacing_ms(self.share));
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
                // Calls of other processes are counted late, and bursts are refused, too.
                calls.refused_at(counts[period].max(calls.value() * 3 / 4));
                calls
            }
            _ => Search::at(counts[period]),
        };
        self.before = self.limit;
        let is_confirmed = self.limit.is_some_and(|limit| limit.period == period && limit.is_confirmed);
        let is_quick = !is_confirmed && period == 1 && hint_ms.is_some_and(|ms| ms <= PERIODS_MS[0]);
        let round_ms = PERIODS_MS[period] / if is_quick { QUICK } else { 1 };
        let (since, next_at, calm_at, is_binding) = (now, now, now.plus(round_ms), false);
        self.limit =
            Some(Limit { period, calls, since, next_at, round_ms, calm_at, is_binding, is_confirmed });
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
        limit.calm_at = now.plus(limit.round_ms);
    }

    /// Until when a further call can hardly be accepted if the limit is why one made at this time was refused; `None` if that was to
    /// be expected.
    pub(crate) fn no_room_before(&self, made_at: Millis) -> Option<Millis> {
        let limit = self.limit.filter(|limit| !limit.calls.is_tried())?;
        Some(made_at.plus(limit.spacing_ms(self.share) / 2))
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
mod tests;
