//! Worlds in which the process crashes: the real orchestrator, killed at seeded points, over a journal that outlives it.
//!
//! Everything in a world is drawn from its seed: what the model says and how it fails, when the process ends (before or
//! after an append took effect, in mid-stream, in a tool, in a wait, in good order), when the journal fails, what people
//! do meanwhile, how the clock is set.
//! Time is virtual, and the same seed gives the same trace, to the letter.
//!
//! After each world it is checked that every turn ended once, that every watcher saw what the history has, that no tool
//! was started twice for a call, that each compaction ended once, that no wait was shorter than the hint or longer than
//! decided, that every request was well-formed and every message that was accepted is there, that a shutdown keeps to its
//! grace and leaves nothing told that is not saved; and, where nobody interfered, that all ended as in a calm world without
//! a crash.

mod book;
mod check;
mod durable;
mod end;
mod fuse;
mod model;
mod person;
mod plan;
mod script;
mod summary;
mod tally;
mod tool;
mod view;
mod wait;
mod watch;
mod world;

use check::Came;
use plan::Plan;
pub use tally::Tally;
use view::is_as_calm;
use world::World;

/// What a world came to.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Turns that were sealed.
    pub turns: usize,
    /// Processes that lived.
    pub lives: usize,
    /// What did not hold.
    pub wrong: Vec<String>,
    /// Everything that happened, line by line; empty unless it was asked for.
    pub trace: Vec<String>,
    /// How often what happened.
    pub tally: Tally,
}

/// Lets a world happen. `traced`: with its trace.
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
