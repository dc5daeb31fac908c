//! One caller's calls to several targets, and several callers' to one, when callers' own limits hold them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Because, Call, Limits, Pacer, Priority, Size, Terms, Ticket, Told, What};
use everturn_wire::{CallerName, TurnId};
use proptest::{collection::vec, prelude::*};

const MINUTE: u64 = 60_000;
const START: u64 = 1_000 * MINUTE;
const TARGETS: [&str; 3] = ["a", "b", "c"];

fn ann() -> CallerName {
    CallerName::parse("ann").unwrap()
}

fn pacer(terms: Terms) -> Pacer {
    let mut pacer = Pacer::new();
    pacer.set_callers([(ann(), terms)]);
    pacer
}

fn one_a_minute() -> Pacer {
    pacer(Terms { requests_per_minute: Some(1), ..Terms::default() })
}

fn ask(pacer: &mut Pacer, target: &str, turn: &str, priority: Priority, now: u64) -> Admission {
    let (turn, name, now) = (TurnId::from(turn), ann(), Millis(now));
    let call = Call { turn: &turn, caller: Some(&name), since: now, priority, size: Size::default() };
    pacer.admit(target, &call, now)
}

#[track_caller]
fn goes(pacer: &mut Pacer, target: &str, turn: &str, now: u64) -> Ticket {
    match ask(pacer, target, turn, Priority::Interactive, now) {
        Admission::Go(ticket) => ticket,
        Admission::Wait(wait) => panic!("{turn} waits: {wait:?}"),
    }
}

#[track_caller]
fn waits(pacer: &mut Pacer, target: &str, turn: &str, now: u64) -> (u64, Because) {
    match ask(pacer, target, turn, Priority::Interactive, now) {
        Admission::Go(_) => panic!("{turn} goes"),
        Admission::Wait(wait) => (wait.until.0 - now, wait.because),
    }
}

fn let_go(pacer: &mut Pacer, now: u64) -> Vec<String> {
    pacer.let_go(50, Millis(now)).iter().map(|turn| turn.as_str().to_owned()).collect()
}

proptest! {
    /// Whatever its calls go to, each minute the one goes that has waited longest.
    #[test]
    fn calls_to_several_targets_go_by_age(targets in vec(0..3_usize, 1..40)) {
        let mut pacer = one_a_minute();
        goes(&mut pacer, "b", "first", START);
        for (n, target) in targets.iter().enumerate() {
            waits(&mut pacer, TARGETS[*target], &n.to_string(), START + 1 + n as u64);
        }
        for (n, target) in targets.iter().enumerate() {
            let now = START + (n as u64 + 1) * MINUTE;
            prop_assert!(pacer.next_at(Millis(now - 10_000)).unwrap().0 <= now);
            prop_assert_eq!(let_go(&mut pacer, now - 1), [""; 0]);
            // One that comes at this moment does not overtake those that wait.
            waits(&mut pacer, TARGETS[(target + 1) % 3], "new", now);
            prop_assert_eq!(let_go(&mut pacer, now), [n.to_string()]);
            goes(&mut pacer, TARGETS[*target], &n.to_string(), now);
            pacer.forget(TARGETS[(target + 1) % 3], &"new".into(), Millis(now));
        }
    }
}

#[test]
fn among_targets_interactive_calls_go_first_and_one_of_eight_is_in_the_background() {
    let mut pacer = one_a_minute();
    goes(&mut pacer, "a", "first", START);
    for n in 0..20 {
        assert!(matches!(
            ask(&mut pacer, "a", &format!("batch {n}"), Priority::Background, START),
            Admission::Wait(_)
        ));
    }
    for n in 0..20 {
        waits(&mut pacer, "b", &format!("chat {n}"), START + 1);
    }
    let went: Vec<_> = (1..=16).flat_map(|n| let_go(&mut pacer, START + n * MINUTE)).collect();
    assert_eq!(went.len(), 16);
    let batch: Vec<_> = went.iter().filter(|turn| turn.starts_with("batch")).collect();
    assert_eq!(batch, ["batch 0", "batch 1"]);
}

#[test]
fn a_target_that_is_closed_to_its_callers_oldest_call_holds_up_no_other_target() {
    let mut pacer = one_a_minute();
    let call = goes(&mut pacer, "a", "first", START);
    let told = Told { what: What::Requests, limit: Some(1), remaining: 0, reset_ms: 9 * MINUTE };
    pacer.heard("a", call, &Limits(vec![told]), Millis(START));
    waits(&mut pacer, "a", "old", START + 1);
    waits(&mut pacer, "b", "new", START + 2);
    assert_eq!(let_go(&mut pacer, START + MINUTE), ["new"]);
}

#[test]
fn a_turn_that_was_let_go_and_then_calls_another_target_counts_once() {
    let mut pacer = pacer(Terms { parallel: Some(1), ..Terms::default() });
    let call = goes(&mut pacer, "a", "first", START);
    waits(&mut pacer, "a", "turn", START);
    pacer.ended("a", call, None);
    assert_eq!(let_go(&mut pacer, START), ["turn"]);
    goes(&mut pacer, "b", "turn", START + 1);
    // And one that insists there.
    let mut pacer = self::pacer(Terms { parallel: Some(1), ..Terms::default() });
    let call = goes(&mut pacer, "a", "first", START);
    waits(&mut pacer, "a", "turn", START);
    pacer.ended("a", call, None);
    assert_eq!(let_go(&mut pacer, START), ["turn"]);
    let (turn, name, now) = (TurnId::from("turn"), ann(), Millis(START));
    let priority = Priority::Interactive;
    let call = Call { turn: &turn, caller: Some(&name), since: now, priority, size: Size::default() };
    assert!(pacer.insist("b", &call, now).is_ok());
}

#[test]
fn what_was_kept_for_a_turn_that_does_not_come_is_free_when_it_lapses_whoever_asks() {
    let mut pacer = pacer(Terms { parallel: Some(1), ..Terms::default() });
    let call = goes(&mut pacer, "a", "first", START);
    waits(&mut pacer, "a", "gone", START);
    pacer.ended("a", call, None);
    assert_eq!(let_go(&mut pacer, START), ["gone"]);
    waits(&mut pacer, "b", "other", START + 1);
    let at = pacer.next_at(Millis(START + 1)).unwrap().0;
    assert_eq!(at, START + 5_000);
    assert_eq!(let_go(&mut pacer, at), ["other"]);
}

#[test]
fn calls_that_their_callers_own_limit_holds_are_not_before_others() {
    let wait = |greedy: usize| {
        let names = ["ann", "bob"].map(|name| CallerName::parse(name).unwrap());
        let mut pacer = Pacer::new();
        let terms = Terms { requests_per_minute: Some(1), ..Terms::default() };
        pacer.set_callers(BTreeMap::from([(names[0].clone(), terms), (names[1].clone(), Terms::default())]));
        let call = goes(&mut pacer, "a", "first", START);
        let told = Told { what: What::Requests, limit: Some(10), remaining: 0, reset_ms: MINUTE };
        pacer.heard("a", call, &Limits(vec![told]), Millis(START));
        (0..greedy).for_each(|n| _ = waits(&mut pacer, "a", &format!("ann {n}"), START));
        let mut last = 0;
        for n in 0..15 {
            let (turn, now, priority) =
                (TurnId::from(format!("bob {n}")), Millis(START), Priority::Interactive);
            let call =
                Call { turn: &turn, caller: Some(&names[1]), since: now, priority, size: Size::default() };
            let Admission::Wait(wait) = pacer.admit("a", &call, now) else { panic!("it goes") };
            last = wait.until.0 - START;
        }
        last
    };
    assert_eq!(wait(15), wait(0));
    assert!(wait(0) > MINUTE, "bob's own calls are before it");
}
