//! The decisions of the protocol between nodes, as pure functions of plain values.
//!
//! `testing/model` compiles this file too, so that what it checks exhaustively is what nodes do.

use core::time::Duration;

/// How long after an append was sent calls may start. An append takes milliseconds, so a longer time means a freeze, or
/// an election of the journal's servers.
pub(crate) const PROVES_FOR: Duration = Duration::from_secs(2);

/// How long after it has read a turn a node decides about running calls. Only if nothing was saved in between.
pub(crate) const UNDECIDED_FOR: Duration = Duration::from_secs(3);

/// Whether the last stored append, sent this long ago, still proves that no other node has reported a call as interrupted.
pub(crate) fn is_proof(age: Duration) -> bool {
    age <= PROVES_FOR
}

/// After how long a turn whose calls may be starting elsewhere may be taken over. `read`: the version at which this node
/// first read it, and how long ago that was.
pub(crate) fn undecided_left<V: PartialEq>(read: Option<(V, Duration)>, version: &V) -> Duration {
    match read {
        Some((known, age)) if known == *version => UNDECIDED_FOR.saturating_sub(age),
        _ => UNDECIDED_FOR,
    }
}

/// What an append of another node is to a follower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It is known already.
    Known,
    /// It follows what is known.
    Next,
    /// Something in between was not heard: the journal has it.
    Gap,
}

/// Compares an append with the version that a follower knows.
pub(crate) fn heard<V: PartialOrd>(previous: &V, version: &V, known: &V) -> Heard {
    if version <= known {
        Heard::Known
    } else if previous == known {
        Heard::Next
    } else {
        Heard::Gap
    }
}

/// What the owner does about a command of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Addressed {
    /// It carries it out.
    Here,
    /// The turn that it was meant for is over: it has no effect.
    Over,
    /// It is not about a turn. If its sender still waits, it sends the command again: one that arrives late must not be
    /// carried out twice.
    Again,
}

/// Whether a command is carried out. `seen`: the turn that its sender saw; `running`: the one that runs.
pub(crate) fn addressed<T: PartialEq>(seen: &T, running: &T, is_for_a_turn: bool) -> Addressed {
    match (seen == running, is_for_a_turn) {
        (true, _) => Addressed::Here,
        (false, true) => Addressed::Over,
        (false, false) => Addressed::Again,
    }
}
