//! What others do, as they document it, and an oracle that knows the limits.

use std::collections::BTreeMap;

use everturn_pacing::{Limits, Priority, Size, What};
use everturn_wire::Failure;

use super::{
    policy::{Next, Policy, Wanted},
    vendor::Vendor,
};

/// Knows the limits, and serves in order.
#[derive(Default)]
pub(super) struct Oracle {
    waiting: BTreeMap<(Priority, u64, usize), Size>,
}

impl Oracle {
    fn first(&self) -> Option<((Priority, u64, usize), Size)> {
        self.waiting.first_key_value().map(|(key, size)| (*key, *size))
    }
}

impl Policy for Oracle {
    fn want(&mut self, wanted: Wanted, vendor: &mut Vendor, now: u64) -> Next {
        let Wanted { turn, since, priority, size, .. } = wanted;
        self.waiting.insert((priority, since, turn), size);
        let is_first = self.first().is_some_and(|((_, _, first), _)| first == turn);
        if is_first && vendor.room_at(size, now) <= now {
            self.waiting.remove(&(priority, since, turn));
            return Next::Now;
        }
        Next::At(u64::MAX)
    }

    fn heard(&mut self, _: usize, _: &Limits, _: u64) {}

    fn refused(&mut self, _: Wanted, _: &Failure, _: &Limits, now: u64) -> u64 {
        now + 1
    }

    fn ended(&mut self, _: usize, _: u64) {}

    fn released(&mut self, vendor: &mut Vendor, now: u64) -> Vec<usize> {
        let first = self.first().filter(|(_, size)| vendor.room_at(*size, now) <= now);
        first.map(|((_, _, turn), _)| turn).into_iter().collect()
    }

    fn next_at(&mut self, vendor: &mut Vendor, now: u64) -> Option<u64> {
        let (_, size) = self.first()?;
        Some(vendor.room_at(size, now))
    }
}

/// Exponential backoff with full jitter: 0.5 s, doubling to 60 s; `retry-after` counts if given.
pub(super) struct FullJitter {
    rng: fastrand::Rng,
    attempts: BTreeMap<usize, u32>,
}

impl FullJitter {
    pub(super) fn new(seed: u64) -> Self {
        Self { rng: fastrand::Rng::with_seed(seed), attempts: BTreeMap::new() }
    }

    fn backoff(&mut self, turn: usize, failure: &Failure) -> u64 {
        let attempt = self.attempts.entry(turn).or_default();
        *attempt += 1;
        let most = (500_u64 << (*attempt).min(10)).min(60_000);
        failure.hint_ms.unwrap_or_else(|| self.rng.u64(0..=most))
    }
}

impl Policy for FullJitter {
    fn want(&mut self, _: Wanted, _: &mut Vendor, _: u64) -> Next {
        Next::Now
    }

    fn heard(&mut self, turn: usize, _: &Limits, _: u64) {
        self.attempts.remove(&turn);
    }

    fn refused(&mut self, wanted: Wanted, failure: &Failure, _: &Limits, now: u64) -> u64 {
        now + self.backoff(wanted.turn, failure)
    }

    fn ended(&mut self, _: usize, _: u64) {}
}

/// AWS' adaptive mode: full jitter, and a token bucket whose rate grows along a cubic curve and falls to 0.7 of the
/// measured rate at a throttle.
pub(super) struct AwsAdaptive {
    jitter: FullJitter,
    is_on: bool,
    rate: f64,
    tokens: f64,
    at: f64,
    last_max: f64,
    throttled_at: f64,
    measured: f64,
    sent: (u64, u32),
}

impl AwsAdaptive {
    pub(super) fn new(seed: u64) -> Self {
        let jitter = FullJitter::new(seed);
        Self {
            jitter,
            is_on: false,
            rate: 0.5,
            tokens: 1.0,
            at: 0.0,
            last_max: 0.0,
            throttled_at: 0.0,
            measured: 0.0,
            sent: (0, 0),
        }
    }

    fn refill(&mut self, now: f64) {
        self.tokens = (self.tokens + (now - self.at) * self.rate).min(self.rate.max(1.0));
        self.at = now;
    }

    /// Measures the rate in half seconds, smoothed by 0.8.
    fn measure(&mut self, now: u64) {
        let bucket = now / 500;
        self.sent.1 += 1;
        if bucket > self.sent.0 {
            let rate = f64::from(self.sent.1) / ((bucket - self.sent.0) as f64 * 0.5);
            self.measured = rate * 0.8 + self.measured * 0.2;
            self.sent = (bucket, 0);
        }
    }

    fn set(&mut self, rate: f64, now: f64) {
        self.refill(now);
        self.rate = rate.min(2.0 * self.measured).max(0.5);
    }
}

impl Policy for AwsAdaptive {
    fn want(&mut self, _: Wanted, _: &mut Vendor, now: u64) -> Next {
        if !self.is_on {
            return Next::Now;
        }
        let seconds = now as f64 / 1_000.0;
        self.refill(seconds);
        self.tokens -= 1.0;
        match self.tokens >= 0.0 {
            true => Next::Now,
            // Waits for its token, and takes it then.
            false => {
                let missing = -self.tokens;
                self.tokens += 1.0;
                Next::At(now + ((missing / self.rate * 1_000.0) as u64).max(1))
            }
        }
    }

    fn heard(&mut self, turn: usize, limits: &Limits, now: u64) {
        self.jitter.heard(turn, limits, now);
        self.measure(now);
        if self.is_on {
            let seconds = now as f64 / 1_000.0;
            let window = (self.last_max * 0.3 / 0.4).cbrt();
            let rate = 0.4 * (seconds - self.throttled_at - window).powi(3) + self.last_max;
            self.set(rate, seconds);
        }
    }

    fn refused(&mut self, wanted: Wanted, failure: &Failure, limits: &Limits, now: u64) -> u64 {
        self.measure(now);
        let seconds = now as f64 / 1_000.0;
        let used = if self.is_on { self.measured.min(self.rate) } else { self.measured };
        (self.last_max, self.throttled_at, self.is_on) = (used, seconds, true);
        self.set(used * 0.7, seconds);
        self.jitter.refused(wanted, failure, limits, now)
    }

    fn ended(&mut self, _: usize, _: u64) {}
}

/// A limit on calls at once: one more per round of successes, nine tenths at a refusal.
pub(super) struct Aimd {
    jitter: FullJitter,
    limit: f64,
    running: usize,
    waiting: BTreeMap<(u64, usize), ()>,
}

impl Aimd {
    pub(super) fn new(seed: u64) -> Self {
        Self { jitter: FullJitter::new(seed), limit: 20.0, running: 0, waiting: BTreeMap::new() }
    }
}

impl Policy for Aimd {
    fn want(&mut self, wanted: Wanted, _: &mut Vendor, _: u64) -> Next {
        if (self.running as f64) < self.limit {
            self.running += 1;
            self.waiting.remove(&(wanted.since, wanted.turn));
            return Next::Now;
        }
        self.waiting.insert((wanted.since, wanted.turn), ());
        Next::At(u64::MAX)
    }

    fn heard(&mut self, turn: usize, limits: &Limits, now: u64) {
        self.jitter.heard(turn, limits, now);
        self.limit += 1.0 / self.limit;
    }

    fn refused(&mut self, wanted: Wanted, failure: &Failure, limits: &Limits, now: u64) -> u64 {
        self.running -= 1;
        self.limit = (self.limit * 0.9).max(1.0);
        self.jitter.refused(wanted, failure, limits, now)
    }

    fn ended(&mut self, _: usize, _: u64) {
        self.running -= 1;
    }

    fn released(&mut self, _: &mut Vendor, _: u64) -> Vec<usize> {
        let room = (self.limit.floor() as usize).saturating_sub(self.running);
        self.waiting.keys().take(room).map(|(_, turn)| *turn).collect()
    }
}

/// Shares of the reported rest: sends what the last response said is left, else waits for the reset, and backs off with
/// full jitter where nothing is reported.
pub(super) struct Shares {
    jitter: FullJitter,
    left: Option<u64>,
    resets_at: u64,
    limit: u64,
}

impl Shares {
    pub(super) fn new(seed: u64) -> Self {
        Self { jitter: FullJitter::new(seed), left: None, resets_at: 0, limit: 0 }
    }

    fn hear(&mut self, limits: &Limits, now: u64) {
        if let Some(told) = limits.0.iter().find(|told| told.what == What::Requests) {
            (self.left, self.resets_at) = (Some(told.remaining), now + told.reset_ms);
            self.limit = told.limit.unwrap_or(self.limit);
        }
    }
}

impl Policy for Shares {
    fn want(&mut self, _: Wanted, _: &mut Vendor, now: u64) -> Next {
        let Some(left) = &mut self.left else { return Next::Now };
        if now >= self.resets_at {
            (*left, self.resets_at) = (self.limit, now + 60_000);
        }
        match left.checked_sub(1) {
            Some(rest) => {
                *left = rest;
                Next::Now
            }
            None => Next::At(self.resets_at + self.jitter.rng.u64(0..1_000)),
        }
    }

    fn heard(&mut self, turn: usize, limits: &Limits, now: u64) {
        self.jitter.heard(turn, limits, now);
        self.hear(limits, now);
    }

    fn refused(&mut self, wanted: Wanted, failure: &Failure, limits: &Limits, now: u64) -> u64 {
        self.hear(limits, now);
        self.jitter.refused(wanted, failure, limits, now)
    }

    fn ended(&mut self, _: usize, _: u64) {}
}
