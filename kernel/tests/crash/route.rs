//! A crash at every point of turns on a route: the same targets are asked, after the same waits.

use everturn_kernel::{Settings, Turn};
use everturn_testkit::{Beat, Fact, Script, World, strategy::any_calm_script};
use everturn_wire::EventBody;
use proptest::prelude::*;

use crate::{
    preset::random::{Preset, any_preset, any_route},
    property::config,
};

proptest! {
    #![proptest_config(config(100))]

    #[test]
    fn a_route_is_taken_as_in_the_calm_story(script in any_calm_script(), targets in any_route(), preset in any_preset()) {
        let settings = Settings { max_recoveries: 9, eager_tools: false, targets, ..script.settings };
        let script = in_no_time(Script { settings, ..script });
        let mut calm = world(&script, &preset);
        let end = calm.begin().sealed().expect("it ends");
        calm.check();
        for point in 0..calm.points() {
            let mut world = world(&script, &preset);
            world.crash_at(point);
            let turn = world.run().sealed().expect("it ends");
            world.check();
            prop_assert_eq!(moves(&calm), moves(&world), "a crash at {}", point);
            prop_assert_eq!(end.outcome(), turn.outcome(), "a crash at {}", point);
            prop_assert_eq!(figures(&end), figures(&turn), "a crash at {}", point);
        }
    }
}

/// The script with models that take no time, and nothing checked: what a crash makes begin again would end later, and the
/// waits that are counted from there would be shorter.
fn in_no_time(mut script: Script) -> Script {
    script.checks.clear();
    for beats in script.steps.iter_mut().flatten() {
        beats.retain(|beat| !matches!(beat, Beat::Wait(_)));
    }
    script
}

fn world(script: &Script, preset: &Preset) -> World {
    World::new(script.clone()).with_schedule(preset.clone())
}

fn figures(turn: &Turn) -> (Option<&str>, u32, u64) {
    (turn.target().map(|target| target.name.as_str()), turn.retries(), turn.waited_ms())
}

/// The waits and the targets after them, and the switches. A crash may have them told once more, but never others.
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
