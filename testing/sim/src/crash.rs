//! Crash worlds: the real orchestrator, killed at seeded points, over a journal that outlives it.
//!
//! Everything in a world derives from its seed: what the model says and how it fails, when the process ends (before or
//! after an append takes effect, mid-stream, in a tool, in a wait, in an orderly shutdown), when the journal fails,
//! what people do meanwhile, and how the clock is set. Time is virtual. The same seed always gives exactly the same
//! trace.
//!
//! After each world, the following is checked: every turn ended once; every watcher saw what the history has; no tool
//! was started twice for a call; each compaction ended once; no wait was shorter than the hint or longer than decided;
//! every request was well-formed; every accepted message is there; and a shutdown kept to its grace period and left
//! nothing published but unsaved. If nobody interfered, everything must also end as in the same world without crashes.

mod book;
mod check;
mod durable;
mod end;
mod fuse;
mod model;
pub mod nodes;
mod person;
mod phase;
mod plan;
mod script;
mod summary;
mod tally;
mod time;
mod tool;
mod view;
mod wait;
mod watch;
mod world;

use check::Came;
pub use phase::PHASES;
use plan::Plan;
pub use tally::Tally;
use view::is_as_calm;
use world::World;

/// The result of a world.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Number of sealed turns.
    pub turns: usize,
    /// Number of processes.
    pub lives: usize,
    /// Violated checks.
    pub wrong: Vec<String>,
    /// The trace, line by line; empty unless requested.
    pub trace: Vec<String>,
    /// Counts of what happened.
    pub tally: Tally,
}

/// Runs a world. `traced`: whether to record its trace.
pub fn run(seed: u64, traced: bool) -> Verdict {
    let plan = Plan::of(seed);
    let world = World::new(seed, plan.clone(), traced);
    let lives = world.run();
    let came = world.check();
    if plan.is_comparable() {
        compare(&world, &came, seed, plan);
    }
    let (trace, wrong, tally) = world.book.close();
    Verdict { turns: came.iter().map(|came| came.turns).sum(), lives, wrong, trace, tally }
}

/// Compares with the same world without crashes.
fn compare(world: &World, came: &[Came], seed: u64, plan: Plan) {
    let calm = World::new(seed, plan.calm(), false);
    calm.run();
    let calmly = calm.check();
    let (_, wrong, _) = calm.book.close();
    for what in wrong {
        world.book.wrong(format!("in the calm world: {what}"));
    }
    world.book.pages().tally.count("a world is compared with a calm one");
    for (found, calm) in came.iter().zip(&calmly) {
        if !is_as_calm(&found.items, &calm.items) {
            world.book.wrong(format!("not as in calm:\n  {:?}\n  {:?}", found.items, calm.items));
        }
    }
    if came.len() != calmly.len() {
        world.book.wrong("a conversation is missing".to_owned());
    }
}
