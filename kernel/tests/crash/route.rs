//! A crash at every point of turns on a route: the same targets are asked, after the same waits.

use everturn_kernel::{Schedule, Settings, Turn, Walls};
use everturn_testkit::{Fact, Script, World, strategy::any_calm_script};
use everturn_wire::EventBody;
use proptest::prelude::*;

use crate::{
    preset::random::{any_jittered, any_preset, any_route},
    property::config,
};

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn a_route_is_taken_as_in_the_calm_story(
        script in any_calm_script(),
        targets in any_route(),
        preset in any_preset(),
    ) {
        let settings = Settings { max_recoveries: 9, eager_tools: false, targets, ..script.settings };
        ends_the_same(&Script { settings, ..script }, &preset)?;
    }

    #[test]
    fn usage_limits_are_sat_out_as_in_the_calm_story(script in any_calm_script(), targets in any_route(), preset in any_preset()) {
        let settings = Settings { max_recoveries: 9, eager_tools: false, targets, ..script.settings };
        ends_the_same(&Script { settings, ..script }, &Walls(preset))?;
    }

    /// With jitter, waits that are counted from a call which a crash delayed differ a little. What is asked does not.
    #[test]
    fn with_jitter_the_same_targets_are_asked(script in any_calm_script(), targets in any_route(), preset in any_jittered()) {
        let settings = Settings { max_recoveries: 9, eager_tools: false, targets, ..script.settings };
        let script = Script { settings, ..script };
        let mut calm = world(&script, &preset);
        let end = calm.begin().sealed().expect("it ends");
        for point in 0..calm.points() {
            let mut world = world(&script, &preset);
            world.crash_at(point);
            let turn = world.run().sealed().expect("it ends");
            world.check();
            prop_assert_eq!(targets_of(&calm), targets_of(&world), "a crash at {}", point);
            prop_assert_eq!(end.outcome(), turn.outcome(), "a crash at {}", point);
            prop_assert_eq!(end.retries(), turn.retries(), "a crash at {}", point);
        }
    }
}

/// The target of each retry.
fn targets_of(world: &World) -> Vec<Option<String>> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ProviderRetry { target, .. }) => Some(target.clone()),
        _ => None,
    })
}

/// After a crash at any point the turn moves, waits and ends as without one.
fn ends_the_same(
    script: &Script,
    schedule: &(impl Schedule + Clone + Send + Sync + 'static),
) -> Result<(), TestCaseError> {
    let mut calm = world(script, schedule);
    let end = calm.begin().sealed().expect("it ends");
    calm.check();
    for point in 0..calm.points() {
        let mut world = world(script, schedule);
        world.crash_at(point);
        let turn = world.run().sealed().expect("it ends");
        world.check();
        prop_assert_eq!(moves(&calm), moves(&world), "a crash at {}", point);
        prop_assert_eq!(end.outcome(), turn.outcome(), "a crash at {}", point);
        prop_assert_eq!(figures(&end), figures(&turn), "a crash at {}", point);
    }
    Ok(())
}

fn world(script: &Script, schedule: &(impl Schedule + Clone + Send + Sync + 'static)) -> World {
    World::new(script.clone()).with_schedule(schedule.clone())
}

/// The target that was asked last, and how often the turn asked again. Its waits are compared one by one.
fn figures(turn: &Turn) -> (Option<&str>, u32) {
    (turn.target().map(|target| target.name.as_str()), turn.retries())
}

/// By how much a wait for a known moment may be off, in milliseconds: the call that a crash repeats fails a little later.
const SHIFT_MS: u64 = 50;

/// A retry or a switch. A crash may have it told once more, but never another one.
#[derive(Debug)]
struct Move {
    what: String,
    delay_ms: u64,
}

impl PartialEq for Move {
    fn eq(&self, other: &Self) -> bool {
        self.what == other.what && self.delay_ms.abs_diff(other.delay_ms) <= SHIFT_MS
    }
}

/// The waits and the targets after them, and the switches.
fn moves(world: &World) -> Vec<Move> {
    let switch = |what: String| Some(Move { what, delay_ms: 0 });
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ProviderRetry { attempt, delay_ms, target, clamped, .. }) => {
            let what = format!("retry {attempt} of {target:?}, clamped {clamped:?}");
            Some(Move { what, delay_ms: *delay_ms })
        }
        Fact::Told(EventBody::TargetSwitched { from, to, reason, .. }) => {
            switch(format!("{from} to {to}: {reason}"))
        }
        Fact::Told(EventBody::TargetRestored { to, .. }) => switch(format!("back to {to}")),
        _ => None,
    })
}
