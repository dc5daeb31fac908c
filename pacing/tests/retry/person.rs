//! A person moves a waiting turn to another of its targets.

use everturn_kernel::{Input, Op, Silence, StreamEvent, Want};
use everturn_pacing::Exponential;
use everturn_wire::{Category, EventBody};

use super::route_run::{Happened, RouteRun, fails, refuses, targets};

/// Creates a turn whose targets are all limited, and which waits for the last one.
fn waiting(names: &str) -> RouteRun<Exponential> {
    let mut run = RouteRun::new(targets(names), Exponential { max_retries: 9, ..Exponential::interactive() });
    let count = names.split_whitespace().count();
    for _ in 0..count {
        run.fail_now(fails(Category::RateLimited, 60_000));
    }
    assert!(matches!(run.turn.want(), Want::Wake(..)), "{}", run.transcript());
    run
}

fn to_b() -> Input {
    Input::GoTo(1)
}

#[test]
fn the_chosen_target_is_asked_at_once() {
    let mut run = waiting("a b");
    let before = run.now;
    run.tell(Input::GoTo(0));
    assert_eq!(run.now, before, "nothing is slept");
    assert_eq!(run.turn.target().map(|target| target.name.as_str()), Some("a"));
    assert_eq!(run.switches().last().map(String::as_str), Some("chosen by a person"));
    let told = run.happened.iter().rev().find_map(|happened| match happened {
        Happened::Told(EventBody::Status { retry, .. }) => retry.clone(),
        _ => None,
    });
    assert_eq!(told.and_then(|retry| retry.target), Some("a".into()), "watchers are told who is asked");
    run.answer();
    assert!(run.transcript().ends_with("call a, recovered"), "{}", run.transcript());
}

#[test]
fn a_choice_is_not_reset_to_the_first_target() {
    let mut run = waiting("a b");
    run.tell(to_b());
    // This is long after the cooldown of `a`. Without the choice, the next step would go back to it.
    run.step(3_600_000);
    run.answer();
    assert!(run.transcript().ends_with("call b, recovered, call b"), "{}", run.transcript());
}

#[test]
fn a_chosen_target_that_fails_is_left_like_any_other() {
    let mut run = waiting("a b c");
    run.tell(to_b());
    run.fail_now(refuses(Category::Auth));
    let asked = run.turn.target().map(|target| target.name.clone());
    assert_ne!(asked.as_deref(), Some("b"), "{}", run.transcript());
}

#[test]
fn a_target_that_failed_for_good_may_be_chosen() {
    let mut run = RouteRun::new(targets("a b"), Exponential::interactive());
    run.fail_now(refuses(Category::Auth));
    run.fail_now(fails(Category::RateLimited, 60_000));
    assert!(matches!(run.turn.want(), Want::Wake(..)));
    run.tell(Input::GoTo(0));
    run.fail_now(fails(Category::Network, None));
    assert!(run.turn.outcome().is_none(), "it counts as any other again: {}", run.transcript());
}

#[test]
fn choosing_the_target_waited_for_is_not_a_switch() {
    let mut run = waiting("a b");
    let before = run.switches().len();
    run.tell(to_b());
    assert!(matches!(run.turn.want(), Want::Stream(_)));
    assert_eq!(run.switches().len(), before);
}

#[test]
fn a_silent_target_may_be_left() {
    let mut run = RouteRun::new(targets("a b"), Exponential::interactive());
    let silence = Silence { silent_ms: 20_000, left_ms: None, alive: false };
    run.tell(Input::Provider(Op::default(), StreamEvent::Silent(silence)));
    run.tell(to_b());
    run.answer();
    assert_eq!(run.transcript(), "call a, call b, recovered");
    assert_eq!(run.switches(), ["chosen by a person"]);
}

#[test]
fn without_a_wait_or_such_a_target_nothing_changes() {
    let mut run = RouteRun::new(targets("a b"), Exponential::interactive());
    let before = run.turn.clone();
    run.tell(to_b());
    assert_eq!(run.turn, before, "the target is being asked");
    let mut run = waiting("a b");
    let before = run.turn.clone();
    run.tell(Input::GoTo(2));
    assert_eq!(run.turn, before);
}
