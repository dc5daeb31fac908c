//! A wait that outlives its process.

use everturn_kernel::{Input, Millis};

use everturn_testkit::{
    Nap, Run, START, Script, World,
    beat::{overloaded, says},
};

const HOUR: u64 = 3_600_000;

/// Ends the process at `then`, during a wait of five seconds, and returns the sleeps of the next process.
fn slept(then: Millis) -> Vec<u64> {
    let steps = vec![vec![overloaded(), says("Hello")]];
    let mut world = World::new(Script { steps, nap: Nap::Endless, ..Script::default() });
    assert!(matches!(world.begin(), Run::Stuck), "it waits");
    world.clock().set(then);
    world.nap(Nap::Whole);
    world.recover().sealed().expect("the turn ends");
    assert_eq!(world.log().calls().len(), 2, "a restart by itself makes no call");
    world.log().sleeps()[1..].to_vec()
}

#[test]
fn the_rest_of_the_wait_is_slept() {
    assert_eq!(slept(START), [5000]);
    assert_eq!(slept(START.plus(2_000)), [3000]);
    assert_eq!(slept(START.plus(4_999)), [1]);
    assert_eq!(slept(START.plus(5_000)), [0]);
}

#[test]
fn a_clock_set_forward_ends_it_and_one_set_back_does_not_stretch_it() {
    assert_eq!(slept(START.plus(HOUR)), [0]);
    assert_eq!(slept(Millis(START.0 - HOUR)), [5000]);
    assert_eq!(slept(Millis(0)), [5000]);
}

#[test]
fn without_a_strategy_it_lasts_until_someone_ends_it() {
    let steps = vec![vec![overloaded(), says("Hello")]];
    let mut world = World::new(Script { steps, nap: Nap::Endless, ..Script::default() });
    assert!(matches!(world.begin(), Run::Stuck), "it waits");
    world.without_strategy();
    assert!(matches!(world.recover(), Run::Stuck), "it waits");
    world.say(Input::RetryNow);
    world.recover().sealed().expect("the turn ends");
}

#[test]
fn a_clock_that_moves_at_each_restart_does_not_extend_the_wait_for_ever() {
    let steps = vec![vec![overloaded(), says("Hello")]];
    let mut world = World::new(Script { steps, nap: Nap::Endless, ..Script::default() });
    assert!(matches!(world.begin(), Run::Stuck), "it waits");
    for hours in [9, 5, 7, 2] {
        world.clock().set(Millis(START.0 - hours * HOUR));
        assert!(matches!(world.recover(), Run::Stuck), "it waits");
    }
    assert_eq!(world.log().calls().len(), 1);
    assert!(world.log().sleeps().iter().all(|ms| *ms <= 5_000), "{:?}", world.log().sleeps());
}
