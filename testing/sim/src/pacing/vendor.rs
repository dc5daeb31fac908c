//! Models of what providers do.

use std::{collections::VecDeque, fmt};

use everturn_pacing::{Limits, Size, Told, What};
use everturn_wire::{Category, Failure};

/// How a provider limits calls.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Rule {
    /// So many requests in each window of so many milliseconds, whole again at its start.
    FixedWindow { requests: u64, per_ms: u64 },
    /// The same with tokens.
    FixedTokens { tokens: u64, per_ms: u64 },
    /// So many requests in any time of this length.
    SlidingWindow { requests: u64, per_ms: u64 },
    /// A bucket that holds so many requests and is refilled continuously.
    TokenBucket { burst: u64, per_minute: u64 },
    /// So many calls at once.
    Concurrency { calls: usize },
    /// Refuses more and more calls as more than this run.
    Overload { calls: usize },
    /// Refuses so many of a hundred calls at random: others share it, and what we ask makes no difference.
    Random { percent: u64, category: Category },
}

/// What a provider says of its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tells {
    /// Headers with limit, rest and reset on every response, and `retry-after`.
    All,
    /// Only `retry-after`.
    Hint,
    /// Nothing.
    Nothing,
    /// `retry-after: 1`, whatever the limit.
    WrongHint,
}

impl fmt::Display for Tells {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "limits",
            Self::Hint => "`retry-after`",
            Self::Nothing => "nothing",
            Self::WrongHint => "`retry-after: 1`, always",
        })
    }
}

/// A provider.
#[derive(Clone, Debug)]
pub(super) struct Vendor {
    rule: Rule,
    tells: Tells,
    rng: fastrand::Rng,
    /// When the current fixed window began, and what it has used up.
    window: (u64, u64),
    /// Accepted calls: when, for sliding windows.
    log: VecDeque<u64>,
    /// What a bucket holds, in thousandths of a request, and when that was.
    bucket: (u64, u64),
    /// When each running call ends.
    running: Vec<u64>,
    /// Calls it received, and how many of them it refused.
    pub(super) calls: u64,
    pub(super) refused: u64,
}

/// What became of a call.
#[derive(Clone, Debug)]
pub(super) enum Answer {
    /// Accepted: the head arrives after `head_ms`, and the answer ends after `all_ms`.
    Accepted { limits: Limits, head_ms: u64, all_ms: u64 },
    /// Refused.
    Refused { limits: Limits, failure: Failure, after_ms: u64 },
}

impl Vendor {
    pub(super) fn new(rule: Rule, tells: Tells, seed: u64) -> Self {
        let burst = if let Rule::TokenBucket { burst, .. } = rule { burst * 1_000 } else { 0 };
        // The first window began at some time before the first call.
        let rng = fastrand::Rng::with_seed(seed);
        Self {
            rule,
            tells,
            rng,
            window: (0, 0),
            log: VecDeque::new(),
            bucket: (burst, 0),
            running: Vec::new(),
            calls: 0,
            refused: 0,
        }
    }

    fn advance(&mut self, now: u64) {
        self.running.retain(|end| *end > now);
        match self.rule {
            Rule::FixedWindow { per_ms, .. } | Rule::FixedTokens { per_ms, .. } => {
                if now >= self.window.0 + per_ms {
                    self.window = (now - now % per_ms, 0);
                }
            }
            Rule::SlidingWindow { per_ms, .. } => {
                while self.log.front().is_some_and(|at| at + per_ms <= now) {
                    self.log.pop_front();
                }
            }
            Rule::TokenBucket { burst, per_minute } => {
                let refilled = (now - self.bucket.1) * per_minute / 60;
                self.bucket.0 = (self.bucket.0 + refilled).min(burst * 1_000);
                // Keep what the division dropped.
                self.bucket.1 = now - ((now - self.bucket.1) * per_minute % 60) / per_minute.max(1);
            }
            Rule::Concurrency { .. } | Rule::Overload { .. } | Rule::Random { .. } => {}
        }
    }

    /// Returns when a call of this size would be accepted: `now` or later.
    pub(super) fn room_at(&mut self, size: Size, now: u64) -> u64 {
        self.advance(now);
        let ends = |running: &[u64], most: usize| {
            let mut ends: Vec<u64> = running.to_vec();
            ends.sort_unstable();
            if ends.len() < most { now } else { ends[ends.len() - most] }
        };
        match self.rule {
            Rule::FixedWindow { requests, per_ms } if self.window.1 >= requests => self.window.0 + per_ms,
            Rule::FixedTokens { tokens, per_ms } if self.window.1 + size.input + size.output > tokens => {
                self.window.0 + per_ms
            }
            Rule::SlidingWindow { requests, per_ms } if self.log.len() as u64 >= requests => {
                self.log[0] + per_ms
            }
            Rule::TokenBucket { per_minute, .. } if self.bucket.0 < 1_000 => {
                self.bucket.1 + ((1_000 - self.bucket.0) * 60).div_ceil(per_minute)
            }
            Rule::Concurrency { calls } | Rule::Overload { calls } => ends(&self.running, calls),
            _ => now,
        }
    }

    fn limits(&self, now: u64) -> Limits {
        if self.tells != Tells::All {
            return Limits::default();
        }
        let told = |what, limit: u64, used: u64, reset_ms| {
            Limits(vec![Told { what, limit: Some(limit), remaining: limit - used.min(limit), reset_ms }])
        };
        match self.rule {
            Rule::FixedWindow { requests, per_ms } => {
                told(What::Requests, requests, self.window.1, self.window.0 + per_ms - now)
            }
            Rule::FixedTokens { tokens, per_ms } => {
                told(What::Tokens, tokens, self.window.1, self.window.0 + per_ms - now)
            }
            Rule::SlidingWindow { requests, per_ms } => {
                let last = self.log.back().copied().unwrap_or(now);
                told(What::Requests, requests, self.log.len() as u64, last + per_ms - now)
            }
            Rule::TokenBucket { burst, per_minute } => {
                let left = self.bucket.0 / 1_000;
                told(What::Requests, burst, burst - left, (burst - left) * 60_000 / per_minute)
            }
            Rule::Concurrency { .. } | Rule::Overload { .. } | Rule::Random { .. } => Limits::default(),
        }
    }

    /// Receives a call.
    pub(super) fn ask(&mut self, size: Size, now: u64) -> Answer {
        self.calls += 1;
        let room_at = self.room_at(size, now);
        let is_refused = match self.rule {
            Rule::Overload { calls } => {
                let over = (self.running.len() + 1).saturating_sub(calls) as f64 / calls as f64;
                self.rng.f64() < over * 4.0
            }
            Rule::Random { percent, .. } => self.rng.u64(..100) < percent,
            _ => room_at > now,
        };
        let tokens = size.input + size.output;
        if is_refused {
            self.refused += 1;
            let category = match self.rule {
                Rule::Overload { .. } => Category::Overloaded,
                Rule::Random { category, .. } => category,
                _ => Category::RateLimited,
            };
            let is_at_once = matches!(self.rule, Rule::Concurrency { .. } | Rule::Overload { .. });
            let hint_ms = match self.tells {
                // Whole seconds, rounded up, as the header has it.
                Tells::All | Tells::Hint if !is_at_once => Some((room_at - now).div_ceil(1_000) * 1_000),
                Tells::WrongHint => Some(1_000),
                _ => None,
            };
            let failure = Failure { hint_ms, ..Failure::new(category, true, "refused") };
            return Answer::Refused { limits: self.limits(now), failure, after_ms: self.rng.u64(80..120) };
        }
        let all_ms = self.rng.u64(1_000..5_000);
        self.running.push(now + all_ms);
        self.window.1 += if matches!(self.rule, Rule::FixedTokens { .. }) { tokens } else { 1 };
        self.log.push_back(now);
        self.bucket.0 = self.bucket.0.saturating_sub(1_000);
        Answer::Accepted { limits: self.limits(now), head_ms: self.rng.u64(200..400), all_ms }
    }
}
