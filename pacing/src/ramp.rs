//! How many calls are made at once if nothing is known: few at first, twice as many each second, and one more for each that is
//! accepted, until one is refused.

use everturn_kernel::Millis;

/// Calls let go at once.
const FIRST: u64 = 8;

/// The ramp begins anew after this many milliseconds.
const LONGEST_MS: u64 = 16_000;

/// How far the ramp runs ahead of the calls that are made, in milliseconds: what nobody uses says nothing about what is possible.
const AHEAD_MS: u64 = 1_000;

/// Lets more and more calls go.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ramp {
    began: Option<Millis>,
    /// From when it doubles: when it began, or later if fewer calls were made than could have been.
    since: Millis,
    let_go: u64,
    accepted: u64,
    /// Whether a call was refused, so that acceptance says little.
    is_limited: bool,
    /// How many were let go in the last ramp that met no refusal.
    proven: u64,
}

impl Ramp {
    /// Begins anew with the next call, because a call was refused.
    pub(crate) fn restart(&mut self) {
        *self = Self { is_limited: true, ..Self::default() };
    }

    /// Returns when the next call may go.
    pub(crate) fn room_at(&self, others: u64, now: Millis) -> Millis {
        if self.is_over(now) { now } else { self.since.plus(self.takes_ms(others)).max(now) }
    }

    fn is_over(&self, now: Millis) -> bool {
        self.began.is_none_or(|began| now.since(began) >= LONGEST_MS)
    }

    /// After how many milliseconds so many more calls may have been made.
    fn takes_ms(&self, others: u64) -> u64 {
        let known = self.proven.saturating_add(self.accepted);
        reached_ms(self.let_go.saturating_add(others).saturating_sub(known))
    }

    /// A call was accepted, and no other node makes calls: a fast provider is not slowed by the clock.
    pub(crate) fn accepted(&mut self) {
        self.accepted += u64::from(!self.is_limited);
    }

    pub(crate) fn take(&mut self, now: Millis) {
        if self.is_over(now) {
            let proven = self.let_go.max(self.proven / 2);
            *self = Self { began: Some(now), since: now, let_go: 0, accepted: 0, proven, ..*self };
        }
        self.let_go = self.let_go.saturating_add(1);
        self.since = self.since.max(Millis(now.0.saturating_sub(AHEAD_MS + self.takes_ms(0))));
    }
}

/// Returns after how many milliseconds more than `n` calls may have been made: none for the first eight, then twice as
/// many each second, evenly within it.
pub(crate) fn reached_ms(n: u64) -> u64 {
    let n = n.max(FIRST);
    let bracket = (n / FIRST).ilog2();
    let begin = FIRST << bracket;
    (u64::from(bracket) * 1_000 + (n - begin) * 1_000 / begin).min(LONGEST_MS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_doubles_each_second() {
        let times = [0, 7, 8, 12, 16, 31, 32, 64, 512].map(reached_ms);
        assert_eq!(times, [0, 0, 0, 500, 1_000, 1_937, 2_000, 3_000, 6_000]);
    }

    /// Makes as many calls as may be made at once, and returns how many.
    fn at_once(ramp: &mut Ramp, now: Millis) -> usize {
        let goes = |_: &u32| {
            let goes = ramp.room_at(0, now) == now;
            if goes {
                ramp.take(now);
            }
            goes
        };
        (0..99).take_while(goes).count()
    }

    #[test]
    fn a_ramp_begins_with_what_the_last_one_proved_and_half_of_that_if_little_was_used() {
        let (mut ramp, began) = (Ramp::default(), |n: u64| Millis(n * LONGEST_MS));
        assert_eq!(at_once(&mut ramp, began(1)), 9);
        ramp.accepted();
        assert_eq!(at_once(&mut ramp, began(1)), 1);
        assert_eq!(at_once(&mut ramp, began(2)), 10 + 9);
        ramp.take(began(3));
        assert_eq!(at_once(&mut ramp, began(4)), 19 / 2 + 9);
    }

    #[test]
    fn it_is_never_far_ahead_of_the_calls_that_are_made() {
        let (mut ramp, began) = (Ramp::default(), Millis(100_000));
        assert_eq!(at_once(&mut ramp, began), 9);
        assert_eq!(at_once(&mut ramp, began.plus(10_000)), 12, "as after 1.25 s");
    }
}
