//! The model, and what its steps share.
//!
//! | part of the model | code that it follows |
//! |---|---|
//! | the log (`Arrive`, `Learn`, `GiveUp`) | `orchestrator/src/journal.rs`, `stores/nats/src/append.rs` |
//! | a session (`Provider`, `Start`, `SaveAgain`, `ToolDone`) | `kernel/src/driver.rs`, `orchestrator/src/session/host.rs`, `orchestrator/src/cluster/proof.rs` |
//! | the seat, loading, following | `orchestrator/src/conversation/{seat,follow}.rs`, `orchestrator/src/registry.rs` |
//! | taking over, resuming | `orchestrator/src/orchestrator/{cluster,elsewhere,waker}.rs` |
//! | commands and their replies | `orchestrator/src/orchestrator/{elsewhere,lost_reply,command,approval}.rs` |

use std::time::Duration;

use crate::{
    rule::Rule,
    rules,
    setting::Setting,
    turns::{Id, Turns, View},
    world::{Held, OLD, Session, World},
};

/// The length of a tick.
const TICK: Duration = Duration::from_millis(1_500);

/// The model.
pub struct Model {
    pub(crate) setting: Setting,
    pub(crate) turns: Turns,
    broken: Option<Rule>,
}

impl Model {
    /// The protocol as it is.
    pub fn new(setting: Setting) -> Self {
        Self { turns: Turns::new(setting.script.clone()), setting, broken: None }
    }

    /// Breaks a rule.
    #[must_use]
    pub fn without(self, rule: Rule) -> Self {
        Self { broken: Some(rule), ..self }
    }

    pub(crate) fn breaks(&self, rule: Rule) -> bool {
        self.broken == Some(rule)
    }

    /// What can be seen of a turn.
    pub fn view(&self, turn: Id) -> View {
        self.turns.view(turn)
    }

    /// Whether a call may start now.
    pub(crate) fn has_proof(&self, session: &Session) -> bool {
        self.breaks(Rule::ProofIsRecent) || rules::is_proof(TICK * u32::from(session.proof))
    }

    /// The turn whose calls a node may start: the one that it has saved last.
    pub(crate) fn turn_to_run(&self, held: &Held) -> Option<Id> {
        match held.driver.session()?.saving {
            None => held.turn,
            Some(saving) if self.breaks(Rule::SavesBeforeTheTool) => saving.next,
            Some(_) => None,
        }
    }

    /// Whether a node must wait before it takes over the turn that it reads.
    pub(crate) fn undecided_left(&self, world: &World, n: usize) -> bool {
        if self.breaks(Rule::WaitsForCalls) {
            return false;
        }
        let read = world.nodes[n].undecided;
        let version = if self.breaks(Rule::WaitsPerVersion) {
            read.map_or(world.log.version(), |(version, _)| version)
        } else {
            world.log.version()
        };
        let read = read.map(|(version, age)| (version, TICK * u32::from(age)));
        !rules::undecided_left(read, &version).is_zero()
    }

    /// A session that has just begun.
    pub(crate) fn session(world: &World) -> Session {
        // What it drives was saved by somebody else, so it has no proof.
        Session { proof: OLD, has_started: false, granted: world.seen.granted, saving: None, then: None }
    }
}
