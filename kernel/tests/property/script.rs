//! Whole stories through the driver: random models, tools and people.

use everturn_testkit::{Run, World, strategy::any_script};
use proptest::prelude::*;

use super::config;

proptest! {
    #![proptest_config(config(4_000))]

    #[test]
    fn every_story_has_its_end(script in any_script()) {
        let mut world = World::new(script);
        world.run().sealed().expect("it ends");
        world.check();
    }
}

proptest! {
    #![proptest_config(config(1_500))]

    /// Not what a calm story does, but never what breaks an invariant.
    #[test]
    fn every_story_in_which_processes_end_has_its_end(script in any_script(), first in 0..60u32, second in 0..60u32) {
        let mut world = World::new(script);
        world.crash_at(first);
        if world.begin() == Run::Crashed {
            world.crash_at(second);
        }
        world.run().sealed().expect("it ends");
        world.check();
    }
}
