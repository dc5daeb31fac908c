//! A property test in which turns sleep for hours of virtual time. The README shows it.
//!
//! `cargo test -p everturn-kernel --example fake_sleep_property` runs the test;
//! `cargo run -p everturn-kernel --example fake_sleep_property` prints the transcript of one case.
#![cfg_attr(not(test), allow(unused_imports, reason = "the property is compiled only for tests"))]
#![allow(clippy::print_stdout, reason = "the example prints its result")]

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
        world.crash_at(point); // the process ends at this point, and another continues from the last save
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
