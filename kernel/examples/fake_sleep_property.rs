//! A property test of turns that sleep for up to hours, in no time; the README shows it.
//!
//! `cargo test -p everturn-kernel --example fake_sleep_property` tests the property,
//! `cargo run -p everturn-kernel --example fake_sleep_property` prints one of its stories.
#![cfg_attr(not(test), allow(unused_imports, reason = "the property itself is there in tests only"))]
#![allow(clippy::print_stdout, reason = "an example shows what it found")]

use std::time::Duration;

use everturn_kernel::{Retry, Schedule};
use everturn_testkit::{World, strategy::any_script};
use proptest::prelude::*;

/// The schedule under test: waits a minute, then two, three, ... and gives up after ten retries.
struct Minutes;

impl Schedule for Minutes {
    fn delay_for(&self, retry: &Retry<'_>) -> Option<Duration> {
        (retry.attempt < 10).then(|| Duration::from_secs(60) * (retry.attempt + 1))
    }
}

proptest! {
    #[test]
    fn nothing_breaks_a_turn(script in any_script(), point in 0..50u32) {
        let mut world = World::new(script).with_schedule(Minutes);
        world.crash_at(point); // the process ends there, and another one goes on with what was saved
        world.run().sealed().expect("the turn ends");
        world.check(); // the invariants: no text twice, no tool twice, no wait below the hint, one end, ...
    }
}

fn main() {
    use everturn_testkit::{Script, beat};

    let script = Script::one_step([beat::overloaded(), beat::overloaded_for(90_000), beat::says("Hello")]);
    let mut world = World::new(script).with_schedule(Minutes);
    world.run();
    println!("{}", world.transcript());
}
