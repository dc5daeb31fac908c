//! What refusals and full windows mean for those who wait.

mod desk;

use desk::{Desk, TARGET, limits, refusal};
use everturn_kernel::Millis;
use everturn_pacing::{Admission, Because, Limits, Priority, Size, What};
use everturn_wire::{Category, Failure};

#[test]
fn a_hint_that_proved_too_short_is_not_believed_again() {
    let mut desk = Desk::new();
    let (early, first) = (desk.goes("early"), desk.goes("a"));
    desk.refused(first, &refusal(Some(50)));
    assert_eq!(desk.waits("b"), (50, Because::Hint));
    desk.pacer.forget(TARGET, &"b".into(), Millis(desk.now));
    desk.now += 50;
    let second = desk.goes("a");
    desk.refused(second, &refusal(Some(50)));
    assert_eq!(desk.waits("b"), (2_000, Because::Hint));
    // A call that was made before has the same to say, and shortens nothing.
    desk.refused(early, &refusal(Some(60)));
    assert_eq!(desk.waits("b"), (2_000, Because::Hint));
}

#[test]
fn calls_that_were_all_refused_teach_no_rate() {
    let mut desk = Desk::new();
    let together: Vec<_> = (0..8).map(|n| desk.goes(&format!("{n}"))).collect();
    together.into_iter().for_each(|ticket| desk.refused(ticket, &refusal(Some(45_000))));
    desk.now += 45_000;
    let probe = desk.goes("0");
    assert_eq!(desk.waits("1").1, Because::Probe);
    desk.answers(probe);
    (1..8).for_each(|n| _ = desk.goes(&format!("{n}")));
}

#[test]
fn a_call_made_before_a_refusal_does_not_end_it() {
    let mut desk = Desk::new();
    let (first, second) = (desk.goes("a"), desk.goes("c"));
    desk.refused(first, &refusal(Some(9_000)));
    desk.heard(second, &Limits::default());
    assert_eq!(desk.waits("b"), (9_000, Because::Hint));
}

#[test]
fn small_calls_do_not_starve_a_large_one_where_a_limit_refills_bit_by_bit() {
    let mut desk = Desk::new();
    let (first, second) = (desk.goes("first"), desk.goes("second"));
    desk.heard(first, &limits(What::Tokens, 10_000, 1_000, 60_000));
    desk.now += 12_000;
    desk.heard(second, &limits(What::Tokens, 10_000, 4_000, 48_000));
    let tokens = |input| Size { input, cached: 0, output: 0, money: 0 };
    let large = desk.ask_as("large", Priority::Interactive, tokens(9_000));
    assert!(matches!(large, Admission::Wait(wait) if wait.because == Because::Tokens), "{large:?}");
    let small = desk.ask_as("small", Priority::Interactive, tokens(500));
    assert!(matches!(small, Admission::Wait(_)), "it would fit: {small:?}");
    desk.now += 30_000;
    assert_eq!(desk.let_go(), ["large"]);
}

#[test]
fn a_limit_on_calls_at_once_is_raised_no_further_than_it_was_tried() {
    let mut desk = Desk::new();
    let running: Vec<_> = (0..4).map(|n| desk.goes(&format!("{n}"))).collect();
    running.iter().for_each(|ticket| desk.heard(*ticket, &Limits::default()));
    let fifth = desk.goes("fifth");
    desk.refused(fifth, &refusal(None));
    running.into_iter().for_each(|ticket| desk.pacer.ended(TARGET, ticket, None));
    for _ in 0..500 {
        desk.now += 1_000;
        let ticket = desk.goes("one at a time");
        desk.answers(ticket);
    }
    let at_once = (0..20).take_while(|n| matches!(desk.ask(&format!("t{n}")), Admission::Go(_))).count();
    assert_eq!(at_once, 5, "one more than were accepted");
}

#[test]
fn a_lone_turn_is_not_slowed_by_a_rate_that_was_learnt() {
    let mut desk = Desk::new();
    for _ in 0..3 {
        let ticket = desk.goes("a");
        desk.answers(ticket);
        desk.now += 5;
    }
    let ticket = desk.goes("a");
    desk.refused(ticket, &refusal(None));
    desk.now += 40;
    for _ in 0..20 {
        let ticket = desk.goes("a");
        desk.answers(ticket);
        desk.now += 5;
    }
    // It is known all the same.
    desk.goes("b");
    assert_eq!(desk.waits("c").1, Because::Rate);
}

#[test]
fn a_probe_that_meets_an_overload_keeps_others_waiting_longer() {
    let mut desk = Desk::new();
    let ticket = desk.goes("a");
    desk.refused(ticket, &refusal(None));
    desk.now += 1_000;
    let probe = desk.goes("b");
    desk.refused(probe, &Failure::new(Category::Overloaded, true, "HTTP 529"));
    assert_eq!(desk.waits("c"), (2_000, Because::Refused));
}
