//! Refusals that have nothing to do with how many calls are made, because others use up the same capacity: holding calls back
//! does not make them rarer.

use everturn_kernel::Millis;

use crate::Ticket;

/// How many doubts make refusals count as noise: at first, and at most. Doubles each time that proves wrong.
const DOUBTS: (u32, u32) = (3, 12);

/// So many refusals in a row are no noise; if more run beside the last one, half as many as run.
const IN_A_ROW: u32 = 8;

/// How long refusals count as noise, in milliseconds: at first, and at most. Doubles each time.
const LASTS_MS: (u64, u64) = (600_000, 14_400_000);

/// Whether refusals are noise. The limit that is known is in doubt if a call was refused, and the next one was accepted though it
/// was made too soon for the limit to have room again; or if far fewer calls at once are refused than were before.
#[derive(Clone, Debug)]
pub(crate) struct Noise {
    /// Refusals since a later call was accepted.
    in_a_row: u32,
    /// The last refused call, and before which time the limit has no room again.
    refused: Option<(Ticket, Option<Millis>)>,
    /// Before which time what the last refusal taught has no room.
    learnt: Option<Millis>,
    doubts: u32,
    needed: u32,
    until: Option<Millis>,
    lasts_ms: u64,
}

/// What a call says about the limit that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Finding {
    Nothing,
    /// It does not explain the last refusal, so that taught nothing.
    Doubt,
    /// No limit does.
    Noise,
}

impl Noise {
    pub(crate) fn new() -> Self {
        let (needed, lasts_ms) = (DOUBTS.0, LASTS_MS.0);
        Self { in_a_row: 0, refused: None, learnt: None, doubts: 0, needed, until: None, lasts_ms }
    }

    /// Whether refusals say nothing about limits at present.
    pub(crate) fn is_noisy(&self, now: Millis) -> bool {
        self.until.is_some_and(|until| now < until)
    }

    /// Whether the call before was refused, too.
    pub(crate) fn is_in_a_row(&self) -> bool {
        self.in_a_row > 1
    }

    /// A call was refused, made at this time beside so many. `no_room_before`: when the limit that is known has room again at the
    /// earliest. Returns whether the call confirms that of the refusal before.
    pub(crate) fn refused(
        &mut self,
        ticket: Ticket,
        made_at: Millis,
        beside: u32,
        no_room_before: Option<Millis>,
    ) -> bool {
        let before = self.refused.filter(|(last, _)| *last < ticket);
        let confirms = before.and_then(|(_, at)| at).is_some_and(|at| made_at <= at);
        self.in_a_row += 1;
        if self.refused.is_none() || before.is_some() {
            self.refused = Some((ticket, no_room_before));
        }
        if self.in_a_row == 2 {
            self.doubts = self.doubts.saturating_sub(1);
        }
        if self.in_a_row >= IN_A_ROW.max(beside / 2) && self.until.take().is_some() {
            self.needed = (self.needed * 2).min(DOUBTS.1);
        }
        confirms
    }

    /// A refusal taught a limit. It is wrong if the next call is accepted though it was made before this.
    pub(crate) fn learnt(&mut self, no_room_before: Millis) {
        self.learnt = Some(no_room_before);
    }

    /// A call was accepted.
    pub(crate) fn accepted(&mut self, ticket: Ticket, made_at: Millis, now: Millis) -> Finding {
        let Some((_, no_room_before)) = self.refused.filter(|(refused, _)| *refused < ticket) else {
            return Finding::Nothing;
        };
        let is_doubtful = self.in_a_row == 1 && no_room_before.is_some_and(|at| made_at <= at);
        let is_wrong = self.in_a_row == 1 && self.learnt.is_some_and(|at| made_at <= at);
        (self.refused, self.in_a_row, self.learnt) = (None, 0, None);
        match (is_doubtful, is_wrong) {
            (true, _) => self.doubt(now),
            (false, true) => Finding::Doubt,
            (false, false) => Finding::Nothing,
        }
    }

    /// The limit that is known does not explain a refusal.
    pub(crate) fn doubt(&mut self, now: Millis) -> Finding {
        self.doubts += 1;
        if self.doubts < self.needed {
            return Finding::Doubt;
        }
        self.doubts = 0;
        self.until = Some(now.plus(self.lasts_ms));
        self.lasts_ms = (self.lasts_ms * 2).min(LASTS_MS.1);
        Finding::Noise
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A call is refused, and the next one, made so much later, is accepted. The limit has no room for a second.
    fn refused_once(noise: &mut Noise, at: u64, later_ms: u64) -> Finding {
        let (ticket, made_at) = (Ticket(at), Millis(at));
        noise.refused(ticket, made_at, 0, Some(made_at.plus(1_000)));
        noise.accepted(Ticket(at + 1), made_at.plus(later_ms), made_at.plus(later_ms))
    }

    #[test]
    fn single_refusals_that_the_limit_does_not_explain_are_noise() {
        let mut noise = Noise::new();
        assert_eq!(refused_once(&mut noise, 10_000, 500), Finding::Doubt);
        assert_eq!(refused_once(&mut noise, 20_000, 1_001), Finding::Nothing, "there was room again");
        assert_eq!(refused_once(&mut noise, 30_000, 500), Finding::Doubt);
        assert!(!noise.is_noisy(Millis(30_500)));
        assert_eq!(refused_once(&mut noise, 40_000, 500), Finding::Noise);
        assert!(noise.is_noisy(Millis(640_499)) && !noise.is_noisy(Millis(640_500)));
    }

    #[test]
    fn many_refusals_in_a_row_are_not() {
        let mut noise = Noise::new();
        (1..4).for_each(|n| _ = refused_once(&mut noise, n * 10_000, 500));
        assert!(noise.is_noisy(Millis(31_000)));
        (1..8).for_each(|n| _ = noise.refused(Ticket(40_000 + n), Millis(40_000), 0, None));
        assert!(noise.is_noisy(Millis(41_000)));
        noise.refused(Ticket(40_008), Millis(40_000), 18, None);
        assert!(noise.is_noisy(Millis(41_000)), "eighteen calls run");
        noise.refused(Ticket(40_009), Millis(40_000), 18, None);
        assert!(!noise.is_noisy(Millis(41_000)));
        noise.accepted(Ticket(40_010), Millis(42_000), Millis(42_000));
        let found: [Finding; 6] =
            core::array::from_fn(|n| refused_once(&mut noise, 50_000 + 10_000 * n as u64, 500));
        assert_eq!(found[4..], [Finding::Doubt, Finding::Noise], "it takes twice as many");
    }

    #[test]
    fn what_a_refusal_taught_is_wrong_if_the_next_call_is_accepted_too_soon() {
        let mut noise = Noise::new();
        for (later, found) in [(2_000, Finding::Doubt), (2_001, Finding::Nothing)] {
            noise.refused(Ticket(1), Millis(1_000), 0, None);
            noise.learnt(Millis(3_000));
            let at = Millis(1_000 + later);
            assert_eq!(noise.accepted(Ticket(2), at, at), found, "{later}");
        }
    }

    #[test]
    fn a_second_refusal_confirms_the_limit() {
        let mut noise = Noise::new();
        assert!(!noise.refused(Ticket(1), Millis(1_000), 0, Some(Millis(2_000))));
        assert!(noise.refused(Ticket(2), Millis(1_500), 0, Some(Millis(2_500))));
        assert_eq!(noise.accepted(Ticket(3), Millis(1_600), Millis(1_700)), Finding::Nothing);
    }
}
