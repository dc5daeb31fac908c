//! What lies between the servers of a cluster, and can be cut.

use std::{cell::RefCell, collections::BTreeSet};

use crate::relay::{Mode, Relay};

/// A relay for each server and each other one that it connects to. Which of the two of a pair carries what they send each
/// other is up to them.
#[derive(Debug)]
pub struct Routes {
    relays: Vec<(usize, usize, Relay)>,
    /// Who is not heard by whom.
    cut: RefCell<BTreeSet<(usize, usize)>>,
}

impl Routes {
    pub(super) async fn between(ports: [u16; 3]) -> Self {
        let mut relays = Vec::new();
        for from in 0..3 {
            for to in (0..3).filter(|to| *to != from) {
                relays.push((from, to, Relay::to([format!("127.0.0.1:{}", ports[to])]).await));
            }
        }
        Self { relays, cut: RefCell::default() }
    }

    /// The address at which one server reaches another.
    pub(super) fn address(&self, from: usize, to: usize) -> String {
        let found = self.relays.iter().find(|(a, b, _)| (*a, *b) == (from, to));
        found.map(|(_, _, relay)| relay.address.clone()).unwrap_or_default()
    }

    /// The others no longer hear a server.
    pub fn mute(&self, server: usize) {
        self.cut.borrow_mut().extend((0..3).map(|other| (server, other)));
        self.apply();
    }

    /// A server no longer hears the others.
    pub fn deafen(&self, server: usize) {
        self.cut.borrow_mut().extend((0..3).map(|other| (other, server)));
        self.apply();
    }

    /// Cuts a server off from the others. Connections stay open, and nothing arrives.
    pub fn isolate(&self, server: usize) {
        self.mute(server);
        self.deafen(server);
    }

    /// Everybody hears everybody again.
    pub fn heal(&self) {
        self.cut.borrow_mut().clear();
        self.apply();
    }

    fn apply(&self) {
        let cut = self.cut.borrow();
        for (from, to, relay) in &self.relays {
            let mode = match (cut.contains(&(*from, *to)), cut.contains(&(*to, *from))) {
                (false, false) => Mode::Relay,
                (true, false) => Mode::DropRequests,
                (false, true) => Mode::DropAnswers,
                (true, true) => Mode::DropAll,
            };
            relay.mode.send_if_modified(|known| std::mem::replace(known, mode) != mode);
        }
    }
}
