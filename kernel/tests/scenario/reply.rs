//! Failed replies on a route, and the limit that they share with failed calls.

use everturn_kernel::{FinishReason, Settings, Target};
use everturn_pacing::Cycling;
use everturn_testkit::{
    Beat, Delays, Fact, Script, World,
    beat::{call, failed, finish, network_failure, overloaded, report, says, thought},
};
use everturn_wire::{Category, Chunk, EventBody, Failure, ForcedBy, Role};
use proptest::{collection::vec, prelude::*};

use super::{
    calls,
    last_step::{over, routed, waits},
    report::{fails, forced, settings, succeeds},
    run,
};
use crate::property::config;

fn reports() -> Vec<Beat> {
    vec![report("r", true), finish(FinishReason::ToolCalls)]
}

fn script_of(steps: Vec<Vec<Vec<Beat>>>) -> Script {
    Script { settings: settings(), steps, ..Script::default() }
}

fn names(asked: &str) -> Vec<String> {
    asked.split_whitespace().map(Into::into).collect()
}

#[test]
fn they_move_along_a_cycling_route_as_failures_do() {
    let script = script_of(vec![vec![says("I think so.")]]);
    let (asked, world, turn) = routed(&over(&["a", "b", "c"], script), Cycling::default());
    assert_eq!((asked, forced(&world)), (names("a b c a b c"), vec![ForcedBy::Exhausted]));
    assert!(waits(&world).is_empty(), "the next one is asked at once");
    fails(&turn, "in 6 attempts");
    let switched = world.log().pick(|fact| match fact {
        Fact::Told(EventBody::TargetSwitched { from, to, .. }) => Some(format!("{from} {to}")),
        Fact::Told(EventBody::TargetRestored { to, .. }) => Some(format!("back to {to}")),
        _ => None,
    });
    assert_eq!(switched, ["a/m b/m", "b/m c/m", "back to a/m", "a/m b/m", "b/m c/m"]);
    // An empty one, too. The step after it begins with the first target again.
    let empty = vec![thought(""), finish(FinishReason::Stop)];
    let asks = vec![call("a", "read"), finish(FinishReason::ToolCalls)];
    let script = script_of(vec![vec![empty], vec![asks], vec![reports()]]);
    let (asked, _, turn) = routed(&over(&["a", "b", "c"], script), Cycling::default());
    assert_eq!(asked, names("a b a"));
    succeeds(&turn);
}

#[test]
fn the_hint_of_the_next_target_counts() {
    let limited = Failure { hint_ms: Some(20_000), ..Failure::new(Category::RateLimited, true, "HTTP 429") };
    let steps = vec![vec![vec![failed(limited)], says("I think so.")], vec![reports()]];
    let script = over(&["a", "b"], script_of(steps));
    let patient = Cycling { clamp_hints: false, ..Cycling::default() };
    let (asked, world, turn) = routed(&script, patient);
    assert_eq!((asked, waits(&world)), (names("a b a"), vec![0, 20_000]));
    succeeds(&turn);
    // The clamp applies to them as to failures.
    let (asked, world, _) = routed(&script, Cycling::default());
    assert_eq!((asked, waits(&world)), (names("a b a"), vec![0, 0]));
}

#[test]
fn elsewhere_the_same_target_is_asked_again() {
    let script = over(&["a", "b"], script_of(vec![vec![says("I think so.")], vec![reports()]]));
    let (asked, _, turn) = routed(&script, Delays::patient());
    assert_eq!(asked, names("a a"));
    succeeds(&turn);
}

#[test]
fn one_limit_on_calls_covers_failed_calls_and_failed_replies() {
    // a fails, b replies, c fails: three calls. The last step has three of its own.
    let steps = vec![vec![overloaded(), says("I think so.")], vec![overloaded()]];
    let (asked, world, _) = routed(&over(&["a", "b", "c"], script_of(steps)), Cycling::default());
    assert_eq!((asked, forced(&world)), (names("a b c a b c"), vec![ForcedBy::Exhausted]));
    // Without a route: two calls, or as many as the report allows replies.
    let steps = vec![vec![overloaded(), says("I think so.")], vec![overloaded(), overloaded(), reports()]];
    let script = Script { schedule: Some(Delays::new([1_000])), ..script_of(steps) };
    let (world, turn) = run(&script);
    assert_eq!((calls(&world), forced(&world)), (names("0.0 0.1 1.0 1.1 1.2"), vec![ForcedBy::Exhausted]));
    succeeds(&turn);
}

proptest! {
    #![proptest_config(config(2_000))]

    #[test]
    fn no_step_makes_more_calls_than_allowed(
        max_attempts in 1..5u32,
        sticky in any::<bool>(),
        steps in vec(vec(0..4u32, 1..5), 1..12),
    ) {
        let attempt = |kind: &u32| match kind {
            0 => overloaded(),
            1 => vec![failed(network_failure("reset"))],
            2 => says("I think so."),
            _ => vec![call("a", "read"), finish(FinishReason::ToolCalls)],
        };
        let steps = steps.iter().map(|step| step.iter().map(attempt).collect()).collect();
        let targets = ["a", "b", "c"].map(|name| Target::new(name, "m")).to_vec();
        let script = script_of(steps);
        let script = Script { settings: Settings { targets, ..script.settings }, ..script };
        let cycling = Cycling { max_attempts, sticky, ..Cycling::default() };
        let mut world = World::new(script).with_schedule(cycling);
        world.run().sealed().expect("the turn ends");
        world.check();
        prop_assert!(most_calls(&world) <= max_attempts, "{}", world.transcript());
    }
}

/// Returns the largest number of calls of a step. A failed reply does not end its step.
fn most_calls(world: &World) -> u32 {
    let (mut calls, mut most, mut replied) = (0, 0, false);
    world.log().each(|_, fact| match fact {
        Fact::Told(EventBody::StepComplete { .. }) => replied = true,
        Fact::Kept(Role::System, Chunk::System { .. }) => replied = false,
        Fact::Told(EventBody::ReportForced { by: ForcedBy::Exhausted, .. }) => calls = 0,
        Fact::Called(..) => {
            calls = if std::mem::take(&mut replied) { 1 } else { calls + 1 };
            most = most.max(calls);
        }
        _ => {}
    });
    most
}
