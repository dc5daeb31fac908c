//! Random models, tools and people, run through the driver.

use everturn_testkit::{Run, World, strategy::any_script};
use proptest::prelude::*;

use super::config;

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn every_script_ends(script in any_script()) {
        let mut world = World::new(script);
        world.run().sealed().expect("the turn ends");
        world.check();
    }
}

proptest! {
    #![proptest_config(config(1_500))]

    /// Crashes may change the outcome, but never break an invariant.
    #[test]
    fn every_script_ends_despite_crashes(script in any_script(), first in 0..60u32, second in 0..60u32) {
        let mut world = World::new(script);
        world.crash_at(first);
        if world.begin() == Run::Crashed {
            world.crash_at(second);
        }
        world.run().sealed().expect("the turn ends");
        world.check();
    }
}
