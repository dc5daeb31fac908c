//! Scenarios: each is a script with its expected transcript.

mod again;
mod answer;
mod approval;
mod caller;
mod compaction;
mod echo;
mod fault;
mod hold;
mod last_step;
mod opaque;
mod reply;
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

/// Runs a script until the seal, and checks the invariants.
fn run(script: &Script) -> (World, Turn) {
    let mut world = World::new(script.clone());
    let turn = world.run().sealed().expect("the turn ends");
    world.check();
    (world, turn)
}

/// Returns the provider calls that were made.
fn calls(world: &World) -> Vec<String> {
    world.log().calls().iter().map(ToString::to_string).collect()
}
