//! Transcripts of runs with crashes, parked turns and stuck tasks.

use std::time::Duration;

use everturn_kernel::{Input, NextCall, Retry, Schedule, Settings, Target, Want};
use everturn_testkit::{Fact, Nap, Run, START, Script, World, beat, play};

fn overloaded_once() -> Script {
    Script::one_step([beat::overloaded(), beat::says("Hello")])
}

/// Returns the lines of actions, without published events and kept chunks.
fn done(transcript: &str) -> Vec<&str> {
    transcript.lines().filter(|line| line.contains("> ")).map(str::trim_start).collect()
}

#[test]
fn a_parked_turn_resumes_after_its_wait() {
    let transcript = play(&Script { parks: true, ..overloaded_once() });
    assert_eq!(done(&transcript), ["0 > call 0.0", "5000 > restart", "5000 > sleep 0", "5000 > call 0.1"]);
}

#[test]
fn any_command_wakes_a_parked_turn() {
    let outside = vec![(2_000, Input::RetryNow)];
    let mut world = World::new(Script { parks: true, outside, ..overloaded_once() });
    assert!(matches!(world.begin(), Run::Left(_, Want::Wake(_, at)) if at == START.plus(5_000)));
    world.run().sealed().expect("the turn ends");
    world.check();
    let transcript = world.transcript();
    assert_eq!(done(&transcript), ["0 > call 0.0", "2000 > restart", "2000 > retry now", "2000 > call 0.1"]);
}

#[test]
fn a_crash_is_followed_by_a_restart_that_repeats_what_was_not_saved() {
    let script = Script { outside: vec![(1_000, Input::RetryNow)], nap: Nap::Endless, ..overloaded_once() };
    let mut calm = World::new(script.clone());
    calm.run().sealed().expect("the turn ends");
    let heard = (0..calm.points()).map(|point| {
        let mut world = World::new(script.clone());
        world.crash_at(point);
        world.run().sealed().expect("the turn ends");
        world.check();
        assert_eq!(world.transcript().matches("> restart").count(), 1, "{}", world.transcript());
        world.transcript().matches("> retry now").count()
    });
    let heard: Vec<_> = heard.collect();
    assert!(heard.contains(&1) && heard.contains(&2), "{heard:?}");
}

#[test]
fn a_stuck_turn_is_reported() {
    let transcript = play(&Script { nap: Nap::Endless, ..overloaded_once() });
    assert!(transcript.ends_with("    0 > sleep 5000\n(deadlock: every task waits)\n"), "{transcript}");
}

/// Begins every step with the second target.
struct FromTheSecond;

impl Schedule for FromTheSecond {
    fn delay_for(&self, _: &Retry<'_>) -> Option<Duration> {
        None
    }

    fn next_target(&self, _: &NextCall<'_>) -> usize {
        1
    }
}

#[test]
fn the_schedule_chooses_the_first_target() {
    let targets = ["a", "b"].map(|model| Target::new("key", model)).to_vec();
    let script = Script { settings: Settings { targets, ..Settings::default() }, ..Script::default() };
    let mut world = World::new(script).with_schedule(FromTheSecond);
    world.run();
    world.check();
    let asked = world.log().pick(|fact| match fact {
        Fact::Called(_, target) => target.clone(),
        _ => None,
    });
    assert_eq!(asked, ["key/b"]);
}
