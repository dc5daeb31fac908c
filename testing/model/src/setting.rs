//! What is explored.

use crate::{
    turns::Script,
    world::{Budget, Command},
};

/// What is explored: what the turns do, what may go wrong, and what a person does.
#[derive(Clone, Debug, Default)]
pub struct Setting {
    /// What the turns do.
    pub script: Script,
    /// What may go wrong.
    pub budget: Budget,
    /// What a person does, and at which node.
    pub command: Option<(Command, u8)>,
    /// Whether the last node hears live events.
    pub hears: bool,
}

/// What may go wrong in every setting.
const USUAL: Budget = Budget {
    crashes: 1,
    doubts: 1,
    give_ups: 1,
    doubles: 0,
    timeouts: 0,
    losses: 0,
    begins: 0,
    releases: 0,
    slow: 0,
};

impl Setting {
    /// The setting that takes longest: the ordinary tests only break rules in it.
    pub const LONG: &'static str = "two waits, a crash and a freeze";

    /// All settings, with their names. `more`: with more failures each, which takes minutes.
    pub fn all(more: bool) -> Vec<(&'static str, Self)> {
        let extra = u8::from(more);
        let usual = Budget { crashes: 1 + extra, give_ups: extra, ..USUAL };
        let freeze = Budget { crashes: extra, give_ups: extra, timeouts: extra, ..USUAL };
        let crash = Budget { doubts: extra, give_ups: 1, timeouts: extra, ..USUAL };
        let twice = Budget { doubles: 1, ..Budget::default() };
        let calls = Script { calls: [true, false], ..Script::default() };
        let silent = Script { calls: [more, false], ..Script::default() };
        let asks = Script { calls: [true, more], asks: true, ..Script::default() };
        let waits = Script { is_held: true, refusals: extra.into(), ..Script::default() };
        let refused = |refusals| Script { refusals, ..Script::default() };
        let called = |budget| Self { script: calls.clone(), budget, ..Self::default() };
        let told = |command, script: &Script, budget| Self {
            script: script.clone(),
            budget,
            command: Some((command, 2)),
            ..Self::default()
        };
        vec![
            ("a tool, a freeze", called(Budget { slow: 2, ..usual })),
            ("a tool, a late append", called(Budget { doubts: extra, give_ups: 1, begins: 1, ..usual })),
            (
                "a tool that may run twice",
                Self {
                    script: Script { is_idempotent: true, ..calls.clone() },
                    budget: usual,
                    ..Self::default()
                },
            ),
            ("a stop, a freeze", told(Command::Stop, &silent, Budget { begins: 1, ..freeze })),
            ("a stop, a crash", told(Command::Stop, &silent, crash)),
            ("a message, a freeze", told(Command::Enqueue, &silent, freeze)),
            ("a message, a crash", told(Command::Enqueue, &silent, crash)),
            ("a message that arrives twice", told(Command::Enqueue, &calls, Budget { doubts: 1, ..twice })),
            ("an approval, a freeze", told(Command::Allow, &asks, freeze)),
            ("an approval, a crash", told(Command::Allow, &asks, Budget { give_ups: extra, ..crash })),
            ("an approval that arrives twice", told(Command::Allow, &asks, twice)),
            ("a wait, a freeze", told(Command::RetryNow, &waits, Budget { releases: 1, ..freeze })),
            (
                "a wait, a crash",
                told(Command::RetryNow, &refused(1 + u32::from(more)), Budget { give_ups: extra, ..crash }),
            ),
            (
                "a watcher",
                Self {
                    budget: Budget { losses: 1, begins: 1, crashes: extra, ..usual },
                    hears: true,
                    ..Self::default()
                },
            ),
            (
                Self::LONG,
                told(Command::RetryNow, &refused(2), Budget { doubts: 1, crashes: 1, ..Budget::default() }),
            ),
        ]
    }
}
