//! A person moves a turn that waits to another of its targets.

use everturn_kernel::{Input, Interactive, Op, Silence, StreamEvent, Want};
use everturn_wire::{Category, EventBody};

use super::story::{Happened, Story, fails, refuses, targets};

/// All targets are limited, and the turn waits for the last one.
fn waiting(names: &str) -> Story<Interactive> {
    let mut story = Story::new(targets(names), Interactive { max_retries: 9, ..Interactive::default() });
    let count = names.split_whitespace().count();
    for _ in 0..count {
        story.fail_now(fails(Category::RateLimited, 60_000));
    }
    assert!(matches!(story.turn.want(), Want::Wake(..)), "{}", story.transcript());
    story
}

fn to_b() -> Input {
    Input::GoTo(1)
}

#[test]
fn the_turn_goes_on_at_once_with_the_target_that_was_chosen() {
    let mut story = waiting("a b");
    let before = story.now;
    story.tell(Input::GoTo(0));
    assert_eq!(story.now, before, "nothing is slept");
    assert_eq!(story.turn.target().map(|target| target.name.as_str()), Some("a"));
    assert_eq!(story.switches().last().map(String::as_str), Some("chosen by a person"));
    let told = story.happened.iter().rev().find_map(|happened| match happened {
        Happened::Told(EventBody::Status { retry, .. }) => retry.clone(),
        _ => None,
    });
    assert_eq!(told.and_then(|retry| retry.target), Some("a".into()), "watchers are told who is asked");
    story.answer();
    assert!(story.transcript().ends_with("call a, recovered"), "{}", story.transcript());
}

#[test]
fn a_choice_is_not_given_up_for_the_first_target() {
    let mut story = waiting("a b");
    story.tell(to_b());
    // Long after the cooldown of `a`: without the choice the next step would go back to it.
    story.step(3_600_000);
    story.answer();
    assert!(story.transcript().ends_with("call b, recovered, call b"), "{}", story.transcript());
}

#[test]
fn a_choice_that_fails_is_moved_on_from() {
    let mut story = waiting("a b c");
    story.tell(to_b());
    story.fail_now(refuses(Category::Auth));
    let asked = story.turn.target().map(|target| target.name.clone());
    assert_ne!(asked.as_deref(), Some("b"), "{}", story.transcript());
}

#[test]
fn a_target_that_failed_for_good_may_be_chosen() {
    let mut story = Story::new(targets("a b"), Interactive::default());
    story.fail_now(refuses(Category::Auth));
    story.fail_now(fails(Category::RateLimited, 60_000));
    assert!(matches!(story.turn.want(), Want::Wake(..)));
    story.tell(Input::GoTo(0));
    story.fail_now(fails(Category::Network, None));
    assert!(story.turn.outcome().is_none(), "it counts as any other again: {}", story.transcript());
}

#[test]
fn the_target_that_is_waited_for_may_be_chosen_and_no_switch_is_told() {
    let mut story = waiting("a b");
    let before = story.switches().len();
    story.tell(to_b());
    assert!(matches!(story.turn.want(), Want::Stream(_)));
    assert_eq!(story.switches().len(), before);
}

#[test]
fn a_silent_target_may_be_left() {
    let mut story = Story::new(targets("a b"), Interactive::default());
    let silence = Silence { silent_ms: 20_000, left_ms: None, alive: false };
    story.tell(Input::Provider(Op::default(), StreamEvent::Silent(silence)));
    story.tell(to_b());
    story.answer();
    assert_eq!(story.transcript(), "call a, call b, recovered");
    assert_eq!(story.switches(), ["chosen by a person"]);
}

#[test]
fn where_nothing_waits_or_no_such_target_is_nothing_changes() {
    let mut story = Story::new(targets("a b"), Interactive::default());
    let before = story.turn.clone();
    story.tell(to_b());
    assert_eq!(story.turn, before, "it is being asked");
    let mut story = waiting("a b");
    let before = story.turn.clone();
    story.tell(Input::GoTo(2));
    assert_eq!(story.turn, before);
}
