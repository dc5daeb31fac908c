//! The last step of a turn that must report, after its retries are exhausted: a step like any other.

use everturn_kernel::{Budget, FinishReason, Schedule, Settings, Target, Turn};
use everturn_pacing::{Cycling, Exponential};
use everturn_testkit::{
    Beat, Delays, Fact, Run, START, Script, World,
    beat::{failed, finish, overflow, overloaded, report, says},
};
use everturn_wire::{Category, EventBody, Failure, ForcedBy};

use super::{
    calls,
    report::{fails, forced, settings, succeeds},
    run,
};

fn limited(hint_ms: u64) -> Vec<Beat> {
    let failure = Failure::new(Category::RateLimited, true, "HTTP 429: slow down");
    vec![failed(Failure { hint_ms: Some(hint_ms), ..failure })]
}

fn reports() -> Vec<Beat> {
    vec![report("r", true), finish(FinishReason::ToolCalls)]
}

fn script_of(schedule: &[u64], attempts: Vec<Vec<Beat>>) -> Script {
    let schedule = Some(Delays::new(schedule));
    Script { settings: settings(), schedule, ..Script::one_step(attempts) }
}

fn within(max_wait_ms: u64, script: Script) -> Script {
    let budget = Budget { max_wait_ms: Some(max_wait_ms), ..Budget::default() };
    Script { settings: Settings { budget, ..script.settings }, ..script }
}

pub(super) fn over(names: &[&str], script: Script) -> Script {
    let targets = names.iter().map(|name| Target::new(*name, "m")).collect();
    Script { settings: Settings { targets, ..script.settings }, ..script }
}

/// Runs a script over a route. Returns the names of the targets that were asked.
pub(super) fn routed(
    script: &Script,
    schedule: impl Schedule + Send + Sync + 'static,
) -> (Vec<String>, World, Turn) {
    let mut world = World::new(script.clone()).with_schedule(schedule);
    let turn = world.run().sealed().expect("the turn ends");
    world.check();
    let asked = world.log().pick(|fact| match fact {
        Fact::Called(_, target) => target.clone(),
        _ => None,
    });
    (asked.iter().map(|name| name.trim_end_matches("/m").to_owned()).collect(), world, turn)
}

#[test]
fn it_waits_and_retries_like_any_other() {
    let attempts = vec![overloaded(), overloaded(), overloaded(), reports()];
    let (world, turn) = run(&script_of(&[1_000], attempts));
    // A retry, the wait before the last step, and its own retry.
    assert_eq!((forced(&world), world.log().sleeps()), (vec![ForcedBy::Exhausted], vec![1_000; 3]));
    succeeds(&turn);
    let (world, turn) = run(&script_of(&[1_000], vec![overloaded()]));
    assert_eq!((calls(&world).len(), forced(&world).len()), (4, 1), "there is one last step");
    fails(&turn, "HTTP 429: busy");
}

#[test]
fn it_asks_no_target_before_its_hint_expires() {
    let attempts = vec![limited(40_000), limited(70_000), reports()];
    let (world, turn) = run(&within(110_000, script_of(&[1_000], attempts.clone())));
    assert_eq!(world.log().sleeps(), [40_000, 70_000]);
    succeeds(&turn);
    // What is left of the budget does not suffice.
    let (world, turn) = run(&within(109_999, script_of(&[1_000], attempts)));
    assert_eq!((world.log().sleeps(), forced(&world).len()), (vec![40_000], 0));
    fails(&turn, "slow down");
}

#[test]
fn a_spent_budget_leaves_two_minutes() {
    let attempts = |hint_ms| vec![limited(40_000), limited(hint_ms), reports()];
    let (world, turn) = run(&within(40_000, script_of(&[1_000; 9], attempts(120_000))));
    assert_eq!(world.log().sleeps(), [40_000, 120_000]);
    succeeds(&turn);
    let (world, turn) = run(&within(40_000, script_of(&[1_000; 9], attempts(120_001))));
    assert_eq!((world.log().sleeps(), forced(&world).len()), (vec![40_000], 0));
    fails(&turn, "slow down");
    // Its retries are within them, too.
    let (world, _) = run(&within(50_000, script_of(&[50_000; 9], vec![overloaded()])));
    assert_eq!(world.log().sleeps(), [50_000; 3]);
    // A deadline that has passed leaves as much.
    let budget = Budget { deadline: Some(START.plus(10)), ..Budget::default() };
    let mut attempts = attempts(60_000);
    attempts[0].insert(0, Beat::Wait(20));
    attempts.remove(1);
    let script = script_of(&[1_000], attempts);
    let (world, turn) = run(&Script { settings: Settings { budget, ..settings() }, ..script });
    assert_eq!(world.log().sleeps(), [40_000]);
    succeeds(&turn);
    // A budget of nothing means no waits.
    let (world, turn) = run(&within(0, script_of(&[1_000], vec![limited(40_000), reports()])));
    assert_eq!((world.log().sleeps(), forced(&world).len()), (Vec::new(), 0));
    fails(&turn, "slow down");
}

#[test]
fn it_is_not_made_where_nothing_is_retried() {
    let (world, turn) = run(&script_of(&[], vec![overloaded(), reports()]));
    assert_eq!((calls(&world).len(), forced(&world).len()), (1, 0));
    fails(&turn, "HTTP 429: busy");
    let (world, _) = run(&Script { schedule: None, ..script_of(&[], vec![overloaded(), reports()]) });
    assert_eq!((calls(&world).len(), forced(&world).len()), (1, 0));
}

#[test]
fn it_moves_along_the_route() {
    let cycling = Cycling { max_attempts: 2, ..Cycling::default() };
    let script = over(&["a", "b", "c"], script_of(&[], vec![overloaded(); 3]));
    let (asked, world, _) = routed(&script, cycling);
    assert_eq!(
        (asked, forced(&world)),
        (["a", "b", "c", "a"].map(Into::into).into(), vec![ForcedBy::Exhausted])
    );
    // It goes to a target that can be asked, although the next one has asked for a wait.
    let attempts = vec![limited(90_000), limited(90_000), overloaded(), reports()];
    let script = over(&["a", "b", "c"], script_of(&[], attempts));
    let (asked, world, turn) = routed(&script, Cycling { max_attempts: 3, ..Cycling::default() });
    assert_eq!((asked, waits(&world)), (["a", "b", "c", "c"].map(Into::into).into(), vec![0, 0]));
    succeeds(&turn);
}

#[test]
fn a_wait_that_a_person_would_not_sit_through_is_not_begun() {
    let quick = Exponential { max_retries: 1, ..Exponential::interactive() };
    let long = || limited(400_000);
    let (_, world, turn) = routed(&over(&["a"], script_of(&[], vec![long(), reports()])), quick);
    assert_eq!((world.log().calls().len(), forced(&world).len()), (1, 0));
    fails(&turn, "slow down");
}

#[test]
fn a_last_step_that_does_not_fit_is_asked_with_a_shortened_history() {
    let attempts = vec![overloaded(), overloaded(), overflow(), reports()];
    let (world, turn) = run(&script_of(&[1_000], attempts));
    assert_eq!(forced(&world), [ForcedBy::Exhausted, ForcedBy::Overflow]);
    succeeds(&turn);
}

#[test]
fn crashes_change_nothing() {
    let attempts = vec![limited(40_000), limited(90_000), overloaded(), reports()];
    let mut script = within(40_000, script_of(&[1_000; 2], attempts));
    script.steps.insert(0, vec![says("a")]);
    let (calm, turn) = run(&script);
    assert_eq!(calm.log().sleeps(), [40_000, 90_000, 1_000]);
    for point in 0..calm.points() {
        let mut world = World::new(script.clone());
        world.crash_at(point);
        if world.begin() == Run::Crashed {
            world.crash_never();
        }
        let crashed = world.run().sealed().expect("the turn ends");
        world.check();
        assert_eq!(turn.outcome(), crashed.outcome(), "crash at {point}");
        assert_eq!(waits(&calm), waits(&world), "crash at {point}");
    }
}

pub(super) fn waits(world: &World) -> Vec<u64> {
    world.log().pick(|fact| match fact {
        Fact::Told(EventBody::ProviderRetry { delay_ms, .. }) => Some(*delay_ms),
        _ => None,
    })
}
