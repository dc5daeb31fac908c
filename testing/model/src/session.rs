//! What a session does: it takes a turn up, feeds it, saves it, and leaves.

use crate::{
    model::Model,
    node::index,
    rule::Rule,
    turns::{Facts, Fed, Id, Moved, Needs},
    world::{Append, Driver, OLD, Owed, Reply, Saving, Session, Then, World},
};

impl Model {
    /// Feeds the turn that a node drives, and saves what changed.
    pub(crate) fn feed(&self, world: &mut World, n: usize, fed: Fed, owes: Option<Owed>) {
        let Some(turn) = world.nodes[n].held.and_then(|held| held.turn) else { return };
        match self.turns.feed(turn, fed) {
            Moved { turn, facts: Some(facts) } => self.save(world, n, Some(turn), facts, owes),
            Moved { facts: None, .. } => {
                self.rest(world, n);
                if let Some(owes) = owes {
                    self.tell(world, n, owes, Reply::Done(true));
                }
            }
        }
    }

    /// Begins a turn; `says`: with the message.
    pub(crate) fn begin(&self, world: &mut World, n: usize, says: bool, owes: Option<Owed>) {
        let session = Self::session(world);
        let Some(held) = &mut world.nodes[n].held else { return };
        held.driver = Driver::Session(session);
        let Moved { turn, .. } = self.turns.begin(held.number + 1, says);
        let facts = Facts { begins: true, queues: says, says, ..Facts::default() };
        self.save(world, n, Some(turn), facts, owes);
    }

    pub(crate) fn save(
        &self,
        world: &mut World,
        n: usize,
        turn: Option<Id>,
        mut facts: Facts,
        owes: Option<Owed>,
    ) {
        let Some(held) = world.nodes[n].held else { return };
        let (mut next, mut number) = (turn, held.number + u8::from(facts.begins));
        let of = number;
        if facts.seals {
            next = None;
            let is_queued = turn.is_some_and(|turn| self.view(turn).has_queue);
            if is_queued && !self.breaks(Rule::NextTurnInTheSeal) {
                (facts.begins, facts.says) = (true, true);
                number += 1;
                next = Some(self.turns.begin(number, true).turn);
            }
        }
        if self.breaks(Rule::GrantsAfterSaving) && facts.allows {
            world.seen.granted = true;
        }
        let mut owes = owes;
        if self.breaks(Rule::RepliesAfterSaving)
            && let Some(owed) = owes.take()
        {
            self.tell(world, n, owed, Reply::Done(true));
        }
        let age = if next.is_some_and(|turn| self.view(turn).runs) { 0 } else { OLD };
        let (node, given_up) = (index(n), world.nodes[n].given_up);
        world.sent.push(Append { node, given_up, expected: held.version, of, next, number, facts });
        if let Some(session) = world.session(n) {
            session.saving = Some(Saving { age, next, number, facts, owes, answer: None });
        }
    }

    pub(crate) fn learn(&self, world: &mut World, n: usize) {
        let Some(saving) = world.session(n).and_then(|session| session.saving.take()) else { return };
        match saving.answer {
            Some(Ok(version)) => self.saved(world, n, version, saving),
            _ if self.breaks(Rule::StaleDropsTheCopy) => {
                let version = world.nodes[n].held.map_or(0, |held| held.version);
                self.saved(world, n, version, saving);
            }
            _ => {
                self.drop_copy(world, n, saving, Reply::NotHere);
            }
        }
    }

    pub(crate) fn saved(&self, world: &mut World, n: usize, version: u8, saving: Saving) {
        let Saving { age, next, number, facts, owes, .. } = saving;
        if facts.allows {
            world.seen.granted = true;
        }
        let granted = world.seen.granted;
        let Some(held) = &mut world.nodes[n].held else { return };
        let is_next = held.number != number;
        (held.version, held.turn, held.number) = (version, next, number);
        let runs = next.is_some_and(|turn| self.view(turn).runs);
        if let Driver::Session(session) = &mut held.driver {
            session.has_started &= runs && !is_next;
            if is_next {
                session.granted = granted;
            }
            let age = if self.breaks(Rule::ProofAgesFromSending) { 0 } else { age };
            session.proof = if runs && !session.has_started { age } else { OLD };
        }
        let is_forgotten = facts.seals && next.is_none() && self.breaks(Rule::NextTurnInTheSeal);
        if is_forgotten && world.seen.added > world.seen.said {
            // What was queued begins the next turn in an append of its own.
            self.begin(world, n, true, None);
            if let Some(append) = world.sent.last_mut() {
                append.facts.queues = false;
            }
        }
        if let Some(owed) = owes {
            self.tell(world, n, owed, Reply::Done(true));
        }
        let client = world.client;
        match world.session(n).and_then(|session| session.then.take()) {
            Some(Then::Release) => self.feed(world, n, Fed::Release, None),
            Some(Then::Command(owes)) => {
                if let Some(client) = client {
                    self.feed(world, n, client.command.fed(), Some(owes));
                }
            }
            // Every session saves its turn before anything else, this one for the next turn.
            None if is_next && facts.seals => self.feed(world, n, Fed::Save, None),
            None => self.rest(world, n),
        }
    }

    /// Leaves the seat if there is nothing to drive.
    pub(crate) fn rest(&self, world: &mut World, n: usize) {
        let Some(held) = &mut world.nodes[n].held else { return };
        if held.driver.idle().is_none() {
            return;
        }
        match held.turn.map(|turn| self.view(turn).needs) {
            None => held.driver = Driver::Empty,
            Some(Needs::Person) => held.driver = Driver::Parked,
            Some(Needs::Time) if !world.is_due => held.driver = Driver::Parked,
            Some(_) => {}
        }
    }

    pub(crate) fn give_up(&self, world: &mut World, n: usize) {
        world.left.give_ups -= 1;
        world.nodes[n].given_up += 1;
        let Some(saving) = world.session(n).and_then(|session| session.saving.take()) else { return };
        if self.breaks(Rule::UnknownIsLoadedAnew) {
            let version = world.nodes[n].held.map_or(0, |held| held.version + 1);
            return self.saved(world, n, version, saving);
        }
        self.drop_copy(world, n, saving, Reply::Unknown);
    }

    /// Forgets the conversation, as it could not be saved, and says so to whoever waits for that.
    pub(crate) fn drop_copy(&self, world: &mut World, n: usize, saving: Saving, reply: Reply) {
        let then = world.session(n).and_then(|session| session.then);
        world.nodes[n].held = None;
        let pending = then.and_then(|then| match then {
            Then::Command(owed) => Some(owed),
            Then::Release => None,
        });
        for owed in saving.owes.into_iter().chain(pending) {
            self.tell(world, n, owed, reply);
        }
    }

    /// Takes the seat for a turn that waits, saves it, and then does something.
    pub(crate) fn take_up(&self, world: &mut World, n: usize, then: Then) {
        Self::take_seat(world, n, Some(then));
        self.feed(world, n, Fed::Save, None);
    }

    pub(crate) fn take_seat(world: &mut World, n: usize, then: Option<Then>) {
        let session = Session { then, ..Self::session(world) };
        if let Some(held) = &mut world.nodes[n].held {
            held.driver = Driver::Session(session);
        }
    }

    pub(crate) fn resume(&self, world: &mut World, n: usize) {
        Self::take_seat(world, n, None);
        let needs = world.nodes[n].held.and_then(|held| held.turn).map(|turn| self.view(turn).needs);
        if needs == Some(Needs::Time) && !world.is_due {
            // Only if the rule is broken.
            world.seen.wrong = Some("a wait ends early");
        } else if self.breaks(Rule::Recovers) || needs == Some(Needs::Time) {
            self.feed(world, n, Fed::Save, None);
        } else {
            self.feed(world, n, Fed::Recover, None);
        }
    }

    pub(crate) fn start(&self, world: &mut World, n: usize) {
        let Some(number) = world.nodes[n].held.map(|held| usize::from(held.number) - 1) else { return };
        let Some(session) = world.session(n) else { return };
        (session.has_started, session.proof) = (true, OLD);
        let seen = &mut world.seen;
        seen.starts[number] += 1;
        if seen.reported[number] {
            seen.wrong = Some("a call starts after it was reported as interrupted");
        }
        if self.setting.script.asks && !seen.allowed {
            seen.wrong = Some("a call starts without approval");
        }
    }
}
