//! A pacer with a clock, asked in few words.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Because, Call, Limits, Pacer, Priority, Size, Ticket, Told, What};
use everturn_wire::{Category, Failure, TurnId};

pub(crate) const TARGET: &str = "work/model";

pub(crate) struct Desk {
    pub(crate) pacer: Pacer,
    pub(crate) now: u64,
}

pub(crate) fn limits(what: What, limit: u64, remaining: u64, reset_ms: u64) -> Limits {
    Limits(vec![Told { what, limit: Some(limit), remaining, reset_ms }])
}

pub(crate) fn refusal(hint_ms: Option<u64>) -> Failure {
    Failure { hint_ms, ..Failure::new(Category::RateLimited, true, "HTTP 429") }
}

impl Desk {
    pub(crate) fn new() -> Self {
        Self { pacer: Pacer::new(), now: 1_000_000 }
    }

    pub(crate) fn ask_as(&mut self, turn: &str, priority: Priority, size: Size) -> Admission {
        let turn = TurnId::from(turn);
        let call = Call { turn: &turn, caller: None, since: Millis(self.now), priority, size };
        self.pacer.admit(TARGET, &call, Millis(self.now))
    }

    pub(crate) fn ask(&mut self, turn: &str) -> Admission {
        self.ask_as(turn, Priority::Interactive, Size::default())
    }

    #[track_caller]
    pub(crate) fn goes(&mut self, turn: &str) -> Ticket {
        match self.ask(turn) {
            Admission::Go(ticket) => ticket,
            Admission::Wait(wait) => panic!("{turn} waits: {wait:?}"),
        }
    }

    /// Returns for how long the turn waits, in milliseconds, and why.
    #[track_caller]
    pub(crate) fn waits(&mut self, turn: &str) -> (u64, Because) {
        match self.ask(turn) {
            Admission::Go(_) => panic!("{turn} goes"),
            Admission::Wait(wait) => (wait.until.0 - self.now, wait.because),
        }
    }

    pub(crate) fn heard(&mut self, ticket: Ticket, limits: &Limits) {
        self.pacer.heard(TARGET, ticket, limits, Millis(self.now));
    }

    pub(crate) fn answers(&mut self, ticket: Ticket) {
        self.heard(ticket, &Limits::default());
        self.pacer.ended(TARGET, ticket, None);
    }

    pub(crate) fn refused(&mut self, ticket: Ticket, failure: &Failure) {
        self.pacer.refused(TARGET, ticket, failure, &Limits::default(), Millis(self.now));
    }

    pub(crate) fn let_go(&mut self) -> Vec<String> {
        let turns = self.pacer.let_go(usize::MAX, Millis(self.now));
        turns.iter().map(|turn| turn.as_str().to_owned()).collect()
    }
}
