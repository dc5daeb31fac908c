//! Retention of events and of whole conversations.

use std::time::Duration;

use everturn_kernel::Millis;
use everturn_orchestrator::Retention;

use super::{amount::Amount, file::RetentionTable};

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

/// Which conversations are kept, and which of their sealed turns keep their events: those that are both recent and among the
/// newest of their conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Keep {
    days: Amount,
    turns: Amount,
    conversation_days: Amount,
}

impl Keep {
    pub(super) fn resolve(table: &RetentionTable) -> Self {
        Self {
            days: table.keep_events_days.unwrap_or(Amount::Only(DAYS)),
            turns: table.keep_events_turns.unwrap_or(Amount::All),
            conversation_days: table.keep_conversations_days.unwrap_or(Amount::All),
        }
    }

    #[cfg(test)]
    pub(crate) fn for_days(days: u32) -> Self {
        Self { days: Amount::Only(days), turns: Amount::All, conversation_days: Amount::Only(days) }
    }

    /// Returns the retention of events relative to the current time.
    pub(crate) fn events(self, now: Millis) -> Retention {
        Retention {
            sealed_before: self.days.only().map(|days| before(now, days)),
            newest_turns: self.turns.only(),
        }
    }

    /// Returns since when a conversation may have been idle, relative to the current time; `None` = for ever.
    pub(crate) fn idle_since(self, now: Millis) -> Option<Millis> {
        self.conversation_days.only().map(|days| before(now, days))
    }
}

fn before(now: Millis, days: u32) -> Millis {
    Millis(now.0.saturating_sub(u64::from(days) * DAY_MS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_back_from_now() {
        let keep = Keep::for_days(2);
        let expected = Retention { sealed_before: Some(Millis(DAY_MS)), newest_turns: None };
        assert_eq!(keep.events(Millis(3 * DAY_MS)), expected);
        assert_eq!(keep.events(Millis(5)).sealed_before, Some(Millis(0)), "before that there was nothing");
        assert_eq!(keep.idle_since(Millis(3 * DAY_MS)), Some(Millis(DAY_MS)));
        let all = Keep { days: Amount::All, turns: Amount::All, conversation_days: Amount::All };
        assert_eq!((all.events(Millis(5)), all.idle_since(Millis(5))), (Retention::default(), None));
    }
}
