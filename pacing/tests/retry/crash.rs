//! Crashes at every point of turns on a route: the same targets are asked after the same waits.

use everturn_kernel::{Settings, StreamEvent, Turn};
use everturn_pacing::{LongLimits, RetryPolicy};
use everturn_testkit::{
    Beat, Fact, Script, World,
    strategy::{any_calm_script, config},
};
use everturn_wire::EventBody;
use proptest::prelude::*;

use crate::random::{any_jittered, any_preset, any_route};

/// Maximum number of points in a script to crash at.
const MOST_POINTS: u32 = 300;

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn a_crash_does_not_change_the_targets_asked(
        script in any_calm_script(),
        targets in any_route(),
        preset in any_preset(),
    ) {
        let settings = Settings { max_recoveries: 9, eager_tools: false, targets, ..script.settings };
        ends_the_same(Script { settings, ..script }, &preset)?;
    }

    #[test]
    fn a_crash_does_not_change_the_waits_for_usage_limits(script in any_calm_script(), targets in any_route(), preset in any_preset()) {
        let settings = Settings { max_recoveries: 9, eager_tools: false, targets, ..script.settings };
        ends_the_same(Script { settings, ..script }, &preset.with(LongLimits::SitOut))?;
    }

    #[test]
    fn with_jitter_the_same_targets_are_asked(script in any_calm_script(), targets in any_route(), preset in any_jittered()) {
        let settings = Settings { max_recoveries: 9, eager_tools: false, targets, ..script.settings };
        ends_the_same(Script { settings, ..script }, &preset)?;
    }
}

/// Checks that after a crash at any point, the turn switches, waits and ends as without one.
fn ends_the_same(script: Script, schedule: &RetryPolicy) -> Result<(), TestCaseError> {
    let script = &instant(script);
    let mut calm = world(script, schedule);
    let end = calm.begin().sealed().expect("the turn ends");
    calm.check();
    // A limit polled once a minute for days has thousands of nearly identical points.
    prop_assume!(calm.points() <= MOST_POINTS);
    for point in 0..calm.points() {
        let mut world = world(script, schedule);
        world.crash_at(point);
        let turn = world.run().sealed().expect("the turn ends");
        world.check();
        prop_assert_eq!(moves(&calm), moves(&world), "crash at {}", point);
        prop_assert_eq!(end.outcome(), turn.outcome(), "crash at {}", point);
        prop_assert_eq!(figures(&end), figures(&turn), "crash at {}", point);
    }
    Ok(())
}

/// Returns the script with instant models and tools, no checks, and only idempotent tools. Otherwise whatever a crash repeats would
/// end later, and waits counted from there would be shorter; and a call that a crash interrupts would be answered with an error, after which a
/// turn with a required report takes a step more.
fn instant(mut script: Script) -> Script {
    script.checks.clear();
    script.settings.idempotent_tools = script.tools.iter().map(|tool| tool.name.clone()).collect();
    for beats in script.steps.iter_mut().flatten().chain(&mut script.summaries) {
        beats.retain(|beat| !matches!(beat, Beat::Wait(_)));
        for beat in beats {
            if let Beat::Say(StreamEvent::Checked(call)) = beat {
                call.checked.check = None;
            }
        }
    }
    for tool in &mut script.tools {
        tool.takes_ms = 0;
    }
    script
}

fn world(script: &Script, schedule: &RetryPolicy) -> World {
    World::new(script.clone()).with_schedule(schedule.clone())
}

fn figures(turn: &Turn) -> (Option<&str>, u32, u64) {
    (turn.target().map(|target| target.name.as_str()), turn.retries(), turn.waited_ms())
}

/// Returns the waits with the targets after them, and the switches. A crash may repeat an entry but not change one.
fn moves(world: &World) -> Vec<String> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ProviderRetry { attempt, delay_ms, target, clamped, .. }) => {
            Some(format!("retry {attempt} of {target:?} after {delay_ms} ms, clamped {clamped:?}"))
        }
        Fact::Told(EventBody::TargetSwitched { from, to, reason, .. }) => {
            Some(format!("{from} to {to}: {reason}"))
        }
        Fact::Told(EventBody::TargetRestored { to, .. }) => Some(format!("back to {to}")),
        _ => None,
    })
}
