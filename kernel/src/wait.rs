//! Waits: what a turn waits for before it continues.

use crate::Millis;

/// What an unsealed turn waits for before it continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Nothing: it continues now.
    Now,
    /// A moment.
    Until(Moment),
    /// A person. Only a command ends the wait, unless `until` is set.
    Person {
        /// When the turn stops waiting for the person; absent = never.
        until: Option<Moment>,
    },
}

/// The end of a wait, and its decided length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// When the wait ends.
    pub at: Millis,
    /// The decided length of the wait, in milliseconds. The wait is never longer, even if the clock is set back.
    pub decided_ms: u64,
}

impl Wait {
    /// Returns the moment at which the wait ends by itself.
    pub fn until(self) -> Option<Moment> {
        match self {
            Self::Now => None,
            Self::Until(moment) => Some(moment),
            Self::Person { until } => until,
        }
    }

    /// Returns when the turn must continue: 0 if now, `None` if no moment ends its wait.
    pub fn due_at(self) -> Option<Millis> {
        match self {
            Self::Now => Some(Millis(0)),
            Self::Until(_) | Self::Person { .. } => self.until().map(|moment| moment.at),
        }
    }

    /// Whether the wait is still running. If more time is left than was decided, the clock was set back, and this
    /// returns false so that the wait is shortened.
    pub fn lasts(self, now: Millis) -> bool {
        match self.until() {
            Some(Moment { at, decided_ms }) => at > now && at.since(now) <= decided_ms,
            None => matches!(self, Self::Person { .. }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Moment = Moment { at: Millis(100), decided_ms: 60 };

    #[test]
    fn a_wait_lasts_until_its_moment_and_never_longer_than_decided() {
        for (now, lasts) in [(39, false), (40, true), (99, true), (100, false), (200, false)] {
            assert_eq!(Wait::Until(WAIT).lasts(Millis(now)), lasts, "at {now}");
            assert_eq!(Wait::Person { until: Some(WAIT) }.lasts(Millis(now)), lasts, "at {now}");
        }
    }

    #[test]
    fn a_wait_for_a_person_alone_lasts_for_ever_and_none_not_at_all() {
        for now in [0, 100, u64::MAX] {
            assert!(Wait::Person { until: None }.lasts(Millis(now)));
            assert!(!Wait::Now.lasts(Millis(now)));
        }
        assert_eq!(Wait::Person { until: None }.due_at(), None);
        assert_eq!(Wait::Now.due_at(), Some(Millis(0)));
        assert_eq!(Wait::Person { until: Some(WAIT) }.due_at(), Some(Millis(100)));
    }
}
