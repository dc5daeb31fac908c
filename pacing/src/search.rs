//! Finding a limit that nobody reports: stay below the value that was refused, and try it again rarely.

/// Calm rounds before the refused value is tried again: at first, and at most.
const PATIENCE: (u32, u32) = (4, 16);

/// A limit that is being found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Search {
    value: u32,
    /// The last value that a whole round used without a refusal.
    good: u32,
    /// The value that was refused last.
    wall: Option<u32>,
    /// By how much the next value exceeds this one. Doubles as long as no wall is near.
    step: u32,
    /// Rounds without a refusal since the last change.
    calm: u32,
    /// Calm rounds before the wall is tried. Doubles each time it is still there.
    patience: u32,
}

impl Search {
    /// Begins with the value that was accepted when one more was refused.
    pub(crate) fn at(value: u32) -> Self {
        let value = value.max(1);
        Self { value, good: value, wall: Some(value + 1), step: 1, calm: 0, patience: PATIENCE.0 }
    }

    /// The same search after another process met a refusal and lowered it to this.
    pub(crate) fn lowered_to(self, value: u32) -> Self {
        Self { patience: self.more_patience(), ..Self::at(value) }
    }

    fn more_patience(&self) -> u32 {
        (self.patience * 2).min(PATIENCE.1)
    }

    pub(crate) fn value(&self) -> u32 {
        self.value
    }

    /// Whether the value that was refused last is being tried again.
    pub(crate) fn is_tried(&self) -> bool {
        self.wall.is_some_and(|wall| self.value >= wall)
    }

    /// A call was refused when so many were accepted.
    pub(crate) fn refused_at(&mut self, accepted: u32) {
        self.wall = Some(self.value);
        self.value = match self.good < self.value {
            true => self.good.min(accepted.max(self.good / 2)),
            // What was good no longer is.
            false => accepted.clamp(self.value / 2, self.value - (self.value / 32).max(1)),
        }
        .max(1);
        (self.good, self.step, self.calm) = (self.value, 1, 0);
        self.patience = self.more_patience();
    }

    /// As many calls as the value allows were accepted, and more were waiting.
    pub(crate) fn was_calm(&mut self) {
        self.calm += 1;
        self.good = self.value;
        if self.is_tried() {
            // It is no longer there.
            (self.wall, self.patience) = (None, PATIENCE.0);
        }
        let next = self.value.saturating_add(self.step);
        let is_near = self.wall.is_some_and(|wall| next >= wall);
        if is_near && self.calm < self.patience {
            return;
        }
        self.step = if is_near { 1 } else { self.step.saturating_mul(2).min(next) };
        self.value = self.wall.filter(|_| is_near).unwrap_or(next);
        self.calm = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the share of rounds that were refused, and the mean value, if so much is allowed.
    fn rounds(mut search: Search, allowed: u32, rounds: u32) -> (f64, f64) {
        let (mut refused, mut sum) = (0, 0);
        for _ in 0..rounds {
            sum += search.value().min(allowed);
            if search.value() > allowed {
                refused += 1;
                search.refused_at(allowed);
            } else {
                search.was_calm();
            }
        }
        (f64::from(refused) / f64::from(rounds), f64::from(sum) / f64::from(rounds))
    }

    #[test]
    fn a_limit_that_was_found_is_tried_rarely() {
        for allowed in [1, 2, 8, 60, 1_000] {
            let (refused, mean) = rounds(Search::at(allowed), allowed, 1_000);
            assert!(refused < 0.07, "{allowed}: {refused}");
            assert!(mean > f64::from(allowed) * 0.98, "{allowed}: {mean}");
        }
    }

    #[test]
    fn a_limit_that_moved_is_found_again() {
        for (found, allowed) in [(8, 80), (80, 8), (60, 6_000), (1_000, 900)] {
            let (refused, mean) = rounds(Search::at(found), allowed, 400);
            assert!(refused < 0.1, "{found} to {allowed}: {refused}");
            assert!(mean > f64::from(allowed) * 0.9, "{found} to {allowed}: {mean}");
        }
    }

    #[test]
    fn a_refusal_lowers_it_to_what_was_accepted_and_at_most_by_half() {
        let mut tried = Search::at(64);
        (0..4).for_each(|_| tried.was_calm());
        assert_eq!((tried.value(), tried.is_tried()), (65, true));
        let lowered = |mut search: Search, accepted| {
            search.refused_at(accepted);
            search.value()
        };
        assert_eq!([100, 40, 3].map(|accepted| lowered(tried, accepted)), [64, 40, 32]);
        // What was good no longer is.
        assert_eq!([100, 60, 3].map(|accepted| lowered(Search::at(64), accepted)), [62, 60, 32]);
        assert_eq!(lowered(Search::at(1), 1), 1);
    }

    #[test]
    fn it_is_tried_again_after_twice_as_many_rounds_each_time() {
        let rounds = |mut search: Search| {
            [8; 4].map(|accepted| {
                let rounds = (1..99).find(|_| {
                    search.was_calm();
                    search.is_tried()
                });
                search.refused_at(accepted);
                rounds.unwrap_or(0)
            })
        };
        assert_eq!(rounds(Search::at(8)), [4, 8, 16, 16]);
        assert_eq!(rounds(Search::at(20).lowered_to(8)), [8, 16, 16, 16], "elsewhere");
    }
}
