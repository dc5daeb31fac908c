//! A wait as the journal keeps it: when it ends, and how long it was decided to be.

use everturn_kernel::{Millis, Turn, Want};

/// The wait of an unsealed turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    /// When it ends.
    pub until: Millis,
    /// How long it was decided to be, in milliseconds: it is never longer, whatever the clock shows later.
    pub decided_ms: u64,
}

impl Wait {
    /// The wait that the turn is in.
    pub(crate) fn of(turn: &Turn) -> Option<Self> {
        let Want::Wake(_, until) = turn.want() else { return None };
        Some(Self { until, decided_ms: turn.wait_ms()? })
    }

    /// Whether there is anything to do for the turn only later. Not when more seems to be left than was ever decided:
    /// then the clock was set back, and the turn must be taken up so that its wait is made shorter.
    pub(crate) fn lasts(self, now: Millis) -> bool {
        self.until > now && self.until.since(now) <= self.decided_ms
    }
}
