//! Who decides when calls are made.

use everturn_pacing::{Lately, Limits, Priority, Size};
use everturn_wire::Failure;

use super::vendor::Vendor;

/// When a turn may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    Now,
    /// It asks again at this time, unless it is woken before.
    At(u64),
}

/// A turn that wants to call, as a policy sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) turn: usize,
    pub(super) since: u64,
    pub(super) priority: Priority,
    pub(super) caller: Option<u8>,
    pub(super) size: Size,
}

/// Decides when calls are made. `vendor` is for the oracle alone.
pub(super) trait Policy {
    fn want(&mut self, wanted: Wanted, vendor: &mut Vendor, now: u64) -> Next;

    /// The provider accepted the turn's call.
    fn heard(&mut self, turn: usize, limits: &Limits, now: u64);

    /// The provider refused the call. Returns when the turn asks the policy again.
    fn refused(&mut self, wanted: Wanted, failure: &Failure, limits: &Limits, now: u64) -> u64;

    fn ended(&mut self, turn: usize, now: u64);

    /// Returns the turns that ask again now.
    fn released(&mut self, _: &mut Vendor, _now: u64) -> Vec<usize> {
        Vec::new()
    }

    /// Returns when to ask for released turns if nothing happens before.
    fn next_at(&mut self, _: &mut Vendor, _now: u64) -> Option<u64> {
        None
    }

    /// Returns how many calls it has to make.
    fn demand(&self) -> u64 {
        0
    }

    /// Sets its part of what is left.
    fn share(&mut self, _mine: u64, _all: u64, _now: u64) {}

    /// Returns what it has to tell the other servers since it was last asked.
    fn news(&mut self) -> Vec<News> {
        Vec::new()
    }

    /// Returns what it tells the others every second.
    fn lately(&mut self, _now: u64) -> Option<News> {
        None
    }

    /// Another server told this.
    fn hear(&mut self, _news: &News, _now: u64) {}
}

/// What a server tells the others, as the orchestrator's notices do.
#[derive(Clone, Debug)]
pub(super) enum News {
    /// A turn was refused at this time, with a hint that ends then. Its server asks again after this time.
    Closed { turn: usize, at: u64, hint_ends: Option<u64>, probe_at: u64 },
    /// A call is finding out whether the provider answers again.
    Probing,
    /// A call made at this time was accepted, and calls had been refused before.
    Opened { asked_at: u64 },
    /// What it did and learnt since it told last.
    Lately(Lately),
}

/// The policies that are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PolicyKind {
    /// Knows the limits.
    Oracle,
    /// The pacer, and the schedule `patient`.
    Ours,
    /// Exponential backoff with full jitter, honouring `retry-after`, as SDKs do.
    FullJitter,
    /// The adaptive retry mode of AWS' SDKs: a client-side rate that follows a cubic curve.
    AwsAdaptive,
    /// A concurrency limit with additive increase and multiplicative decrease, as in Netflix' limiters.
    Aimd,
    /// Shares of the reported rest, per minute, as LiteLLM documents.
    Shares,
}

impl PolicyKind {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Oracle, Self::Ours, Self::FullJitter, Self::AwsAdaptive, Self::Aimd, Self::Shares];

    /// Returns its name, for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Oracle => "oracle",
            Self::Ours => "everturn",
            Self::FullJitter => "full jitter",
            Self::AwsAdaptive => "AWS adaptive",
            Self::Aimd => "AIMD",
            Self::Shares => "shares",
        }
    }
}
