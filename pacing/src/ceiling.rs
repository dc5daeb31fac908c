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
