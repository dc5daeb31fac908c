//! Worlds of several nodes: the real orchestrator at each of them, over one modelled log.
//!
//! Everything derives from the seed: what the model says and how it fails; which nodes are killed, frozen, shut down, or cut
//! off from the log, the other nodes or the membership, one way, too, and when; when the log has no leader; how events,
//! commands and the answers to appends are lost, repeated and delayed, so that an append may be stored after it was given
//! up; and what people do at which node. After a while the noise ends, every node is connected, and everything must settle.
//!
//! Besides what is checked for one process: no call of a tool starts twice at all nodes together, or at a node that was
//! replaced; no provider call is repeated unless a fault, a stop or a *retry now* cut it off; no call comes before the end
//! of its wait, or long after it; a message is neither lost nor said twice, at whatever nodes a request was repeated; no
//! task panics.
//! `notes/mutants.md` lists the bugs that these checks caught on purpose.

mod check;
mod ledger;
mod life;
mod model;
mod node;
mod panics;
mod person;
mod plan;
mod tool;
mod watch;
mod world;

use super::{Tally, Verdict, world::runtime};
use plan::Plan;
use world::World;

/// Runs a world of this many nodes. `traced`: whether to record its trace.
pub fn run(seed: u64, nodes: usize, traced: bool) -> Verdict {
    run_with(seed, nodes, traced, false)
}

/// Runs a world whose watchers also go back to earlier cursors.
pub fn run_restless(seed: u64, nodes: usize, traced: bool) -> Verdict {
    run_with(seed, nodes, traced, true)
}

fn run_with(seed: u64, nodes: usize, traced: bool, is_restless: bool) -> Verdict {
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => {
            let (wrong, trace, tally) =
                (vec![format!("no runtime can be made: {error}")], Vec::new(), Tally::default());
            return Verdict { turns: 0, lives: 0, wrong, trace, tally };
        }
    };
    runtime.block_on(async {
        let world = World::new(seed, Plan::of(seed, nodes), traced);
        if is_restless {
            world.watchers.iter().zip(seed..).for_each(|(watcher, seed)| watcher.make_restless(seed));
        }
        let lives = world.run().await;
        let turns = world.check().iter().map(|came| came.turns).sum();
        let (trace, wrong, tally) = world.ledger.book.close();
        Verdict { turns, lives, wrong, trace, tally }
    })
}
