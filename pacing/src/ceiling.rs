//! A limit on calls at once, learnt from refusals.

use crate::{Ticket, search::Search};

/// Less than half as many calls at once do not overload a provider.
const LEAST: u32 = 6;

/// The most calls that may run at once, if a refusal told.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ceiling {
    calls: Option<Search>,
    /// The last call made before the ceiling changed: earlier calls say nothing about it.
    learnt_after: Option<Ticket>,
    /// Calls accepted since the ceiling changed.
    accepted: u32,
    /// The most calls that were accepted at once.
    proven: u32,
    /// The most that ran when the provider was overloaded.
    overloaded_at: Option<u32>,
}

/// What a refusal says about calls at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Too many ran at once.
    Busy,
    /// It cannot be the number of calls at once: fewer ran than were accepted before.
    Other,
}

impl Ceiling {
    /// Returns how many more calls may run; `None` = no limit is known.
    pub(crate) fn left(&self, running: u32) -> Option<u32> {
        self.calls.map(|calls| calls.value().saturating_sub(running))
    }

    /// Learns from a refusal. `running`: calls that run beside it; `last`: the last call made.
    pub(crate) fn refused(&mut self, ticket: Ticket, running: u32, last: Ticket) -> Verdict {
        self.accepted = 0;
        let is_same_event = self.learnt_after.is_some_and(|after| ticket <= after);
        match &mut self.calls {
            _ if running == 0 => {
                *self = Self::default();
                Verdict::Other
            }
            Some(calls) if is_same_event => {
                if running < calls.value() {
                    calls.refused_at(running);
                    self.proven = running;
                }
                Verdict::Busy
            }
            Some(_) if running < self.proven => {
                *self = Self::default();
                Verdict::Other
            }
            Some(calls) => {
                calls.refused_at(running);
                self.learnt_after = Some(last);
                Verdict::Busy
            }
            None => {
                self.calls = Some(Search::at(running));
                self.learnt_after = Some(last);
                self.proven = running;
                Verdict::Busy
            }
        }
    }

    /// Lowers the ceiling because the provider is overloaded: to nine tenths of what runs. Returns whether calls at once do not
    /// explain it, as less than half of what once was too much runs.
    pub(crate) fn overloaded(&mut self, ticket: Ticket, running: u32, last: Ticket) -> bool {
        self.accepted = 0;
        if self.learnt_after.is_some_and(|after| ticket <= after) {
            return false;
        }
        self.learnt_after = Some(last);
        self.proven = 0;
        let lower = (running * 9 / 10).max(1);
        match &mut self.calls {
            Some(calls) => calls.refused_at(lower),
            None => self.calls = Some(Search::at(lower)),
        }
        let most = self.overloaded_at.unwrap_or(LEAST).max(running);
        self.overloaded_at = Some(most);
        running < most / 2
    }

    /// A call was accepted; `running` were then. `last`: the last call made.
    pub(crate) fn accepted(&mut self, ticket: Ticket, running: u32, last: Ticket) {
        self.proven = self.proven.max(running);
        let is_new = self.learnt_after.is_none_or(|after| ticket > after);
        let Some(calls) = self.calls.as_mut().filter(|_| is_new) else { return };
        self.accepted += 1;
        // Before it grows again, the last step must have been tried.
        if self.accepted >= calls.value() && self.proven >= calls.value() {
            self.accepted = 0;
            calls.was_calm();
            self.learnt_after = Some(last);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_teaches_as_many_as_ran_and_others_of_the_same_event_the_fewest() {
        let mut ceiling = Ceiling::default();
        let mut refused = |ticket, running, last| {
            let verdict = ceiling.refused(Ticket(ticket), running, Ticket(last));
            (verdict, ceiling.left(3))
        };
        assert_eq!(refused(11, 10, 20), (Verdict::Busy, Some(7)));
        assert_eq!(refused(20, 10, 25), (Verdict::Busy, Some(7)));
        assert_eq!(refused(20, 7, 25), (Verdict::Busy, Some(4)));
        // Seven were accepted at once, but now one less is too much.
        assert_eq!(refused(21, 7, 25), (Verdict::Busy, Some(3)));
        assert_eq!(refused(25, 5, 25), (Verdict::Busy, Some(2)));
        assert_eq!(refused(26, 4, 30), (Verdict::Other, None), "five were accepted at once");
        assert_eq!(refused(27, 0, 30), (Verdict::Other, None));
    }

    #[test]
    fn an_overload_lowers_it_to_nine_tenths_unless_less_than_half_of_what_once_was_too_much_runs() {
        for (running, left, is_unexplained) in [(1, 1, true), (2, 1, true), (3, 2, false), (20, 18, false)] {
            let mut ceiling = Ceiling::default();
            assert_eq!(ceiling.overloaded(Ticket(1), running, Ticket(30)), is_unexplained, "{running}");
            assert_eq!(ceiling.left(0), Some(left), "{running}");
        }
        let overloaded = |ticket, running| {
            let mut ceiling = Ceiling::default();
            ceiling.overloaded(Ticket(1), 20, Ticket(30));
            (ceiling.overloaded(Ticket(ticket), running, Ticket(40)), ceiling.left(0))
        };
        assert_eq!(overloaded(30, 5), (false, Some(18)), "the same event");
        assert_eq!(overloaded(31, 10), (false, Some(9)));
        assert_eq!(overloaded(31, 9), (true, Some(9)), "no less than half");
    }

    #[test]
    fn it_grows_after_four_rounds_in_which_as_many_ran_as_it_allows() {
        let mut ceiling = Ceiling::default();
        ceiling.refused(Ticket(5), 4, Ticket(9));
        // They were made before.
        (0..16).for_each(|_| ceiling.accepted(Ticket(9), 4, Ticket(9)));
        let mut ticket = 9;
        let mut round = |running| {
            (0..4).for_each(|_| {
                ticket += 1;
                ceiling.accepted(Ticket(ticket), running, Ticket(ticket));
            });
            ceiling.left(0)
        };
        assert_eq!([4; 5].map(&mut round), [4, 4, 4, 5, 5].map(Some));
        // It does not grow further before five have run.
        assert_eq!([4; 9].map(&mut round), [5; 9].map(Some));
        assert_eq!(round(5), Some(6));
    }
}
