//! What other processes know: an earlier one, those beside this one, and whether there is a network.

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Because, Call, Limits, Pacer, Priority, Size, Ticket, Told, Wait, What};
use everturn_wire::{Category, Failure, TurnId, Unreached};

const TARGET: &str = "work/model";
const DAY_MS: u64 = 24 * 60 * 60 * 1_000;

fn ask(pacer: &mut Pacer, turn: &str, now: u64) -> Admission {
    let turn = TurnId::from(turn);
    pacer.admit(TARGET, &call(&turn), Millis(now))
}

/// Turns are as old as their names.
fn call(turn: &TurnId) -> Call<'_> {
    let since = Millis(turn.as_str().bytes().next().unwrap_or(0).into());
    Call { turn, caller: None, since, priority: Priority::Interactive, size: Size::default() }
}

#[track_caller]
fn goes(pacer: &mut Pacer, turn: &str, now: u64) -> Ticket {
    match ask(pacer, turn, now) {
        Admission::Go(ticket) => ticket,
        Admission::Wait(wait) => panic!("{turn} waits: {wait:?}"),
    }
}

/// For how long a turn waits, in milliseconds, and why.
#[track_caller]
fn waits(pacer: &mut Pacer, turn: &str, now: u64) -> (u64, Because) {
    match ask(pacer, turn, now) {
        Admission::Go(_) => panic!("{turn} goes"),
        Admission::Wait(Wait { until, because }) => (until.0 - now, because),
    }
}

fn answered(pacer: &mut Pacer, turn: &str, now: u64) {
    let ticket = goes(pacer, turn, now);
    pacer.heard(TARGET, ticket, &Limits::default(), Millis(now));
    pacer.ended(TARGET, ticket, None);
}

fn refused(pacer: &mut Pacer, turn: &str, hint_ms: Option<u64>, now: u64) {
    let ticket = goes(pacer, turn, now);
    let failure = Failure { hint_ms, ..Failure::new(Category::RateLimited, true, "HTTP 429") };
    pacer.refused(TARGET, ticket, &failure, &Limits::default(), Millis(now));
}

/// The turn's call reaches nobody. Returns how long it waits if that is the network's fault, in milliseconds.
fn unreached(pacer: &mut Pacer, turn: &str, why: Unreached, now: u64) -> Option<u64> {
    let ticket = goes(pacer, turn, now);
    let failure = Failure { unreached: Some(why), ..Failure::new(Category::Network, true, "no") };
    let turn = TurnId::from(turn);
    let until = pacer.unreached(TARGET, ticket, &call(&turn), &failure, Millis(now));
    if until.is_none() {
        pacer.refused(TARGET, ticket, &failure, &Limits::default(), Millis(now));
    }
    until.map(|at| at.0 - now)
}

#[test]
fn a_target_that_never_answered_may_simply_not_be_there() {
    let mut pacer = Pacer::new();
    assert_eq!(unreached(&mut pacer, "a", Unreached::NoConnection, 1_000), None);
    assert_eq!(
        unreached(&mut pacer, "a", Unreached::NoRoute, 1_000),
        Some(5_000),
        "nothing else is the matter"
    );
}

#[test]
fn while_the_network_is_gone_one_turn_looks_for_it() {
    let mut pacer = Pacer::new();
    answered(&mut pacer, "a", 500);
    let (mut waited, mut now) = (Vec::new(), 1_000);
    for _ in 0..6 {
        let wait_ms = unreached(&mut pacer, "a", Unreached::NoConnection, now).expect("it is the network");
        assert_eq!(waits(&mut pacer, "b", now).1, Because::Offline);
        waited.push(wait_ms);
        now += wait_ms;
        assert_eq!(pacer.let_go(9, Millis(now)), ["a".into()]);
    }
    assert_eq!(waited, [5_000, 10_000, 20_000, 30_000, 30_000, 30_000]);
    answered(&mut pacer, "a", now);
    assert_eq!(pacer.let_go(9, Millis(now)), ["b".into()]);
}

#[test]
fn turns_that_lose_the_network_together_wait_as_long_as_the_first_of_them() {
    let mut pacer = Pacer::new();
    answered(&mut pacer, "a", 500);
    let failure =
        Failure { unreached: Some(Unreached::NoName), ..Failure::new(Category::Network, true, "no") };
    let mut lost = |turns: [&str; 2]| {
        let tickets = turns.map(|turn| goes(&mut pacer, turn, 1_000));
        let mut now = 1_000;
        [0, 1].map(|n| {
            now += 1_000;
            let turn = TurnId::from(turns[n]);
            pacer.unreached(TARGET, tickets[n], &call(&turn), &failure, Millis(now)).map(|at| at.0 - now)
        })
    };
    assert_eq!(lost(["a", "b"]), [Some(5_000), Some(4_000)]);
}

#[test]
fn a_call_that_looked_for_the_network_in_vain_holds_nobody() {
    let mut pacer = Pacer::new();
    let late = goes(&mut pacer, "b", 0);
    assert_eq!(unreached(&mut pacer, "a", Unreached::NoRoute, 100), Some(5_000));
    let (ticket, turn) = (goes(&mut pacer, "a", 5_100), TurnId::from("a"));
    // An answer to a call from before arrives meanwhile, and asks for more patience.
    let refusal = Failure { hint_ms: Some(1_000), ..Failure::new(Category::RateLimited, true, "HTTP 429") };
    pacer.refused(TARGET, late, &refusal, &Limits::default(), Millis(5_200));
    let failure =
        Failure { unreached: Some(Unreached::NoRoute), ..Failure::new(Category::Network, true, "no") };
    let until = pacer.unreached(TARGET, ticket, &call(&turn), &failure, Millis(5_300));
    assert_eq!(until, Some(Millis(6_200)));
    assert!(!pacer.is_probed(TARGET, Millis(5_300)));
    assert_eq!(pacer.let_go(9, Millis(6_200)), [turn]);
}

#[test]
fn while_others_answer_or_after_a_day_it_is_not_the_network() {
    let mut pacer = Pacer::new();
    answered(&mut pacer, "a", 500);
    let asked = goes(&mut pacer, "a", 1_000);
    let turn = TurnId::from("o");
    let Admission::Go(other) = pacer.admit("other", &call(&turn), Millis(1_000)) else { panic!("goes") };
    pacer.heard("other", other, &Limits::default(), Millis(1_050));
    let failure =
        Failure { unreached: Some(Unreached::NoName), ..Failure::new(Category::Network, true, "no") };
    assert_eq!(pacer.unreached(TARGET, asked, &call(&turn), &failure, Millis(1_100)), None);

    let mut pacer = Pacer::new();
    answered(&mut pacer, "a", 500);
    assert_eq!(unreached(&mut pacer, "a", Unreached::NoConnection, 501 + DAY_MS), None);
    assert_eq!(unreached(&mut pacer, "a", Unreached::NoRoute, 501 + DAY_MS), Some(5_000));
}

/// What the next process knows that begins at this time.
fn next(pacer: &Pacer, saved_at: u64, now: u64) -> Pacer {
    let mut next = Pacer::new();
    next.restore(TARGET, &pacer.known(TARGET, Millis(saved_at)).expect("a target"), Millis(now));
    next
}

#[test]
fn a_hint_holds_in_the_next_process_and_then_one_turn_asks() {
    let mut pacer = Pacer::new();
    refused(&mut pacer, "first", Some(10_000), 1_000);
    let mut later = next(&pacer, 1_000, 5_000);
    assert_eq!(waits(&mut later, "a", 5_000), (6_000, Because::Hint));
    // The wait ended while no process was running.
    let mut late = next(&pacer, 1_000, 60_000);
    goes(&mut late, "a", 60_000);
    assert_eq!(waits(&mut late, "b", 60_000).1, Because::Probe);
    // The call that was finding out is lost with its process.
    goes(&mut pacer, "first", 11_000);
    let mut later = next(&pacer, 11_500, 12_000);
    goes(&mut later, "x", 12_000);
}

#[test]
fn a_refused_turn_follows_its_own_schedule_in_the_next_process_too() {
    let mut pacer = Pacer::new();
    for now in [1_000, 2_000, 3_000, 4_000] {
        refused(&mut pacer, "first", None, now);
    }
    let mut later = next(&pacer, 4_000, 4_100);
    assert_eq!(waits(&mut later, "other", 4_100).1, Because::Refused);
    later.forget(TARGET, &"other".into(), Millis(4_100));
    goes(&mut later, "first", 4_100);
}

#[test]
fn known_limits_and_answers_are_kept_and_nothing_for_longer_than_a_day() {
    let mut pacer = Pacer::new();
    let ticket = goes(&mut pacer, "a", 1_000);
    let told = Told { what: What::Requests, limit: Some(10), remaining: 1, reset_ms: 30_000 };
    pacer.heard(TARGET, ticket, &Limits(vec![told]), Millis(1_000));
    pacer.ended(TARGET, ticket, None);
    let mut later = next(&pacer, 1_000, 11_000);
    goes(&mut later, "b", 11_000);
    assert_eq!(waits(&mut later, "c", 11_000), (20_000, Because::Requests));
    assert_eq!(
        unreached(&mut next(&pacer, 1_000, 40_000), "x", Unreached::NoConnection, 40_000),
        Some(5_000)
    );

    let mut pacer = Pacer::new();
    refused(&mut pacer, "first", Some(10_000), 1_000);
    let late = 12_000 + DAY_MS;
    assert!(!next(&pacer, 1_000, late).is_closed(TARGET));
}

/// Two processes, the first of which was refused, and told the second one.
fn two(hint_ms: Option<u64>) -> [Pacer; 2] {
    let mut pacers = [Pacer::new(), Pacer::new()];
    refused(&mut pacers[0], "first", hint_ms, 100_000);
    pacers[1].refused_elsewhere(TARGET, &"first".into(), 0, hint_ms, 1_000, Millis(100_000));
    pacers
}

#[test]
fn a_limit_found_elsewhere_holds_here_and_the_other_process_asks_first() {
    let [mut a, mut b] = two(Some(10_000));
    assert_eq!(waits(&mut b, "x", 101_000), (11_000, Because::Hint));
    // Repeated notices change nothing.
    b.refused_elsewhere(TARGET, &"first".into(), 5_000, Some(5_000), 5_000, Millis(105_000));
    assert_eq!(waits(&mut b, "x", 105_000).0, 7_000);
    goes(&mut a, "first", 110_000);
    b.probed_elsewhere(TARGET, Millis(110_010));
    assert_eq!(waits(&mut b, "x", 112_000).1, Because::Probe);
    b.accepted_elsewhere(TARGET, 500, Millis(110_510));
    assert_eq!(b.let_go(9, Millis(112_000)), ["x".into()]);
}

#[test]
fn a_process_that_falls_silent_holds_nobody_up() {
    let [_, mut b] = two(None);
    assert_eq!(waits(&mut b, "x", 100_000), (3_000, Because::Refused));
    assert_eq!(b.let_go(9, Millis(103_000)), ["x".into()]);
    // It was asking.
    let [_, mut b] = two(Some(10_000));
    b.probed_elsewhere(TARGET, Millis(110_000));
    assert_eq!(waits(&mut b, "x", 120_000).1, Because::Probe);
    assert_eq!(b.next_at(Millis(120_000)), Some(Millis(125_000)));
    goes(&mut b, "x", 125_000);
}

#[test]
fn what_came_before_says_nothing() {
    // An answer to a call from before the refusal.
    let [mut a, mut b] = two(Some(60_000));
    b.accepted_elsewhere(TARGET, 20_000, Millis(110_000));
    assert_eq!(waits(&mut b, "x", 110_000).1, Because::Hint);
    // A refusal from before an answer here.
    a.accepted_elsewhere(TARGET, 0, Millis(120_000));
    answered(&mut a, "x", 120_000);
    a.refused_elsewhere(TARGET, &"o".into(), 10_000, Some(60_000), 60_000, Millis(121_000));
    answered(&mut a, "y", 121_000);
}
