//! How long events are kept.

use everturn_kernel::Millis;

/// Which sealed turns keep their events. A turn's events are deleted if either condition applies; the default keeps
/// all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Delete the events of turns sealed before this moment.
    pub sealed_before: Option<Millis>,
    /// Keep events only for the newest N turns of each conversation.
    pub newest_turns: Option<u32>,
}

impl Retention {
    /// Whether the events of all turns are kept.
    pub fn is_all(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the last turn whose events are deleted, by its position, given when the turns of a conversation were
    /// sealed, oldest first. The events of earlier turns are deleted, too.
    pub fn last_dropped(&self, sealed_at: impl ExactSizeIterator<Item = Millis>) -> Option<usize> {
        let kept = self.newest_turns.map_or(usize::MAX, |turns| turns as usize);
        let by_number = sealed_at.len().saturating_sub(kept).checked_sub(1);
        let by_time = self.sealed_before.and_then(|before| {
            sealed_at.enumerate().filter(|(_, at)| *at < before).map(|(turn, _)| turn).last()
        });
        by_number.max(by_time)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_condition_drops_a_turn_and_those_before_it() {
        let dropped = |sealed_before: Option<u64>, newest_turns| {
            let retention = Retention { sealed_before: sealed_before.map(Millis), newest_turns };
            // The clock was set back before the third turn.
            retention.last_dropped([10, 20, 5, 30].map(Millis).into_iter())
        };
        assert_eq!(dropped(None, None), None);
        assert_eq!(dropped(None, Some(4)), None);
        assert_eq!(dropped(None, Some(3)), Some(0));
        assert_eq!(dropped(None, Some(0)), Some(3));
        assert_eq!(dropped(Some(5), None), None, "sealed at that moment, not before");
        assert_eq!(dropped(Some(6), None), Some(2));
        assert_eq!(dropped(Some(31), None), Some(3));
        assert_eq!(dropped(Some(6), Some(9)), Some(2));
        assert_eq!(dropped(Some(6), Some(0)), Some(3));
        let all = Retention { sealed_before: Some(Millis(9)), newest_turns: Some(0) };
        assert_eq!(all.last_dropped([].into_iter()), None);
    }
}
