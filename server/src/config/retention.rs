//! Retention of events, apart from the history.

use std::{fmt, time::Duration};

use everturn_kernel::Millis;
use everturn_orchestrator::Retention;
use serde::{Deserialize, Deserializer, de};

use super::file::RetentionTable;

/// Default retention of a sealed turn's events, in days. Only a client that reconnects with an earlier cursor needs
/// them; later, it reads the history.
const DAYS: u32 = 30;

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Default retention of ephemeral conversations after their last turn, in minutes.
const EPHEMERAL_MINUTES: u32 = 60;

/// Returns how long ephemeral conversations are kept after their last turn.
pub(super) fn ephemeral(table: &RetentionTable) -> Duration {
    let minutes = table.keep_ephemeral_minutes.unwrap_or(EPHEMERAL_MINUTES);
    Duration::from_secs(60 * u64::from(minutes))
}

/// Which sealed turns keep their events: those that are both recent and among the newest of their conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    days: Amount,
    turns: Amount,
}

/// A number, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    All,
    Only(u32),
}

impl Keep {
    pub(super) fn resolve(table: &RetentionTable) -> Self {
        Self {
            days: table.keep_events_days.unwrap_or(Amount::Only(DAYS)),
            turns: table.keep_events_turns.unwrap_or(Amount::All),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_days(days: u32) -> Self {
        Self { days: Amount::Only(days), turns: Amount::All }
    }

    /// Whether everything is kept for ever.
    pub(crate) fn is_all(self) -> bool {
        (self.days, self.turns) == (Amount::All, Amount::All)
    }

    /// Returns the retention relative to the current time.
    pub(crate) fn at(self, now: Millis) -> Retention {
        let before = |days| Millis(now.0.saturating_sub(u64::from(days) * DAY_MS));
        Retention { sealed_before: self.days.only().map(before), newest_turns: self.turns.only() }
    }
}

impl Amount {
    fn only(self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Only(count) => Some(count),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 up, or \"all\"")
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Amount, E> {
        let fits = u32::try_from(count).ok().map(Amount::Only);
        fits.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(count), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
        match text {
            "all" => Ok(Amount::All),
            other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_back_from_now() {
        let keep = Keep::for_days(2);
        let expected = Retention { sealed_before: Some(Millis(DAY_MS)), newest_turns: None };
        assert_eq!(keep.at(Millis(3 * DAY_MS)), expected);
        assert_eq!(keep.at(Millis(5)).sealed_before, Some(Millis(0)), "before that there was nothing");
        let all = Keep { days: Amount::All, turns: Amount::All };
        assert!(all.is_all() && !keep.is_all());
        assert_eq!(all.at(Millis(5)), Retention::default());
    }
}
