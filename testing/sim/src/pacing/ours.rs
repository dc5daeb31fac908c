//! Everturn's own policy: the pacer, and the schedule `patient` for refused turns.

use std::collections::HashMap;

use everturn_kernel::{Millis, Retry, Schedule as _};
use everturn_pacing::{Admission, Call, Known, Limits, Pacer, Patient, Ticket};
use everturn_wire::{CallerName, Failure, TurnId};

use super::{
    policy::{News, Next, Policy, Wanted},
    vendor::Vendor,
};

const TARGET: &str = "target";

#[derive(Default)]
pub(super) struct Ours {
    pacer: Pacer,
    tickets: HashMap<usize, Ticket>,
    attempts: HashMap<usize, u32>,
    /// When calls that run were made.
    asked_at: HashMap<usize, u64>,
    news: Vec<News>,
}

fn name(turn: usize) -> TurnId {
    TurnId::from(turn.to_string())
}

fn call<'a>(wanted: Wanted, turn: &'a TurnId, caller: Option<&'a CallerName>) -> Call<'a> {
    let Wanted { since, priority, size, .. } = wanted;
    Call { turn, caller, since: Millis(since), priority, size }
}

impl Policy for Ours {
    fn want(&mut self, wanted: Wanted, _: &mut Vendor, now: u64) -> Next {
        let turn = name(wanted.turn);
        let caller = wanted.caller.and_then(|n| CallerName::parse(&n.to_string()).ok());
        match self.pacer.admit(TARGET, &call(wanted, &turn, caller.as_ref()), Millis(now)) {
            Admission::Go(ticket) => {
                self.tickets.insert(wanted.turn, ticket);
                self.asked_at.insert(wanted.turn, now);
                if self.pacer.is_closed(TARGET) {
                    self.news.push(News::Probing);
                }
                Next::Now
            }
            Admission::Wait(wait) => Next::At(wait.until.0.max(now + 1)),
        }
    }

    fn heard(&mut self, turn: usize, limits: &Limits, now: u64) {
        self.attempts.remove(&turn);
        let was_closed = self.pacer.is_closed(TARGET);
        self.pacer.heard(TARGET, self.tickets[&turn], limits, Millis(now));
        if was_closed && !self.pacer.is_closed(TARGET) {
            self.news.push(News::Opened { asked_at: self.asked_at[&turn] });
        }
    }

    fn refused(&mut self, wanted: Wanted, failure: &Failure, limits: &Limits, now: u64) -> u64 {
        let turn = name(wanted.turn);
        let attempt = self.attempts.entry(wanted.turn).or_default();
        let wait = Patient.delay_for(&Retry::new(*attempt, failure).of_turn(&turn));
        *attempt += 1;
        let wait_ms =
            wait.map_or(1_800_000, |wait| wait.as_millis() as u64).max(failure.hint_ms.unwrap_or(0));
        let ticket = self.tickets.remove(&wanted.turn).expect("a call was made");
        self.pacer.refused(TARGET, ticket, failure, limits, Millis(now));
        if let Some(Known { closed_at: Some(at), probe_at: Some(probe_at), hint_ends, refused, .. }) =
            self.pacer.known(TARGET, Millis(now))
        {
            let turn = refused.and_then(|turn| turn.as_str().parse().ok()).unwrap_or(wanted.turn);
            let (hint_ends, probe_at) = (hint_ends.map(|at| at.0), probe_at.0);
            self.news.push(News::Closed { turn, at: at.0, hint_ends, probe_at });
        }
        now + wait_ms
    }

    fn ended(&mut self, turn: usize, _: u64) {
        if let Some(ticket) = self.tickets.remove(&turn) {
            self.pacer.ended(TARGET, ticket, None);
        }
    }

    fn released(&mut self, _: &mut Vendor, now: u64) -> Vec<usize> {
        let released = self.pacer.let_go(usize::MAX, Millis(now));
        released.iter().filter_map(|turn| turn.as_str().parse().ok()).collect()
    }

    fn next_at(&mut self, _: &mut Vendor, now: u64) -> Option<u64> {
        self.pacer.next_at(Millis(now)).map(|at| at.0)
    }

    fn demand(&self) -> u64 {
        self.pacer.demand(TARGET)
    }

    fn share(&mut self, mine: u64, all: u64, now: u64) {
        self.pacer.share(TARGET, mine, all, Millis(now));
    }

    fn news(&mut self) -> Vec<News> {
        std::mem::take(&mut self.news)
    }

    fn lately(&mut self, now: u64) -> Option<News> {
        Some(News::Lately(self.pacer.lately(TARGET, Millis(now))))
    }

    fn hear(&mut self, news: &News, now: u64) {
        let at = Millis(now);
        match *news {
            News::Closed { turn, at: closed_at, hint_ends, probe_at } => {
                let (hint_ms, probe_ms) =
                    (hint_ends.map(|end| end.saturating_sub(now)), probe_at.saturating_sub(now));
                self.pacer.refused_elsewhere(TARGET, &name(turn), now - closed_at, hint_ms, probe_ms, at);
            }
            News::Probing => self.pacer.probed_elsewhere(TARGET, at),
            News::Lately(lately) => self.pacer.lately_elsewhere(TARGET, lately, at),
            News::Opened { asked_at } => self.pacer.accepted_elsewhere(TARGET, now - asked_at, at),
        }
    }
}
