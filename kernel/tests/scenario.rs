//! What a turn does, told as stories: each a script and the transcript that must come of it.

mod again;
mod answer;
mod approval;
mod caller;
mod compaction;
mod echo;
mod fault;
mod hold;
mod report;
mod retry;
mod review;
mod rewind;
mod silence;
mod steering;
mod tool;
mod wait;

use everturn_kernel::Turn;
use everturn_testkit::{Script, World};

/// Plays a script to its end, which must be a seal, and checks the invariants.
fn run(script: &Script) -> (World, Turn) {
    let mut world = World::new(script.clone());
    let turn = world.run().sealed().expect("it ends");
    world.check();
    (world, turn)
}

/// The provider calls that were made.
fn calls(world: &World) -> Vec<String> {
    world.log().calls().iter().map(ToString::to_string).collect()
}
