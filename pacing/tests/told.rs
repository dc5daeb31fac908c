//! What a pacer tells of its targets and callers, and what others told it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod desk;

use desk::{Desk, TARGET, limits, refusal};
use everturn_kernel::Millis;
use everturn_pacing::{
    Admission, Because, Call, Counts, Kind, Limits, Pacer, Priority, Size, Terms, Ticket, Use, What,
};
use everturn_wire::{CallerName, Category, Failure, TurnId, Unreached};

const MINUTE: u64 = 60_000;
const START: u64 = 1_000 * MINUTE;

fn name(text: &str) -> CallerName {
    CallerName::parse(text).unwrap()
}

#[test]
fn a_target_says_who_runs_who_waits_and_who_probes() {
    let mut desk = Desk::new();
    let seen = |desk: &Desk| {
        let pacer = &desk.pacer;
        (
            pacer.demand(TARGET),
            pacer.waiting(TARGET),
            pacer.is_closed(TARGET),
            pacer.is_probed(TARGET, Millis(desk.now)),
        )
    };
    assert_eq!(seen(&desk), (0, 0, false, false));
    let (first, _) = (desk.goes("first"), desk.goes("second"));
    assert_eq!(seen(&desk), (2, 0, false, false));
    desk.refused(first, &refusal(Some(1_000)));
    desk.waits("third");
    assert_eq!(seen(&desk), (2, 1, true, false));
    desk.now += 1_000;
    let probe = desk.goes("third");
    assert_eq!(seen(&desk), (2, 0, true, true));
    desk.answers(probe);
    assert_eq!(seen(&desk), (1, 0, false, false));
}

#[test]
fn a_refusal_of_a_call_from_before_does_not_close_a_target_that_has_answered_since() {
    for answers_elsewhere in [false, true] {
        let mut desk = Desk::new();
        let (first, second) = (desk.goes("first"), desk.goes("second"));
        desk.refused(second, &refusal(Some(1_000)));
        desk.now += 1_000;
        if answers_elsewhere {
            desk.pacer.accepted_elsewhere(TARGET, 0, Millis(desk.now));
        } else {
            let probe = desk.goes("second");
            desk.answers(probe);
        }
        desk.refused(first, &refusal(None));
        assert!(!desk.pacer.is_closed(TARGET), "{answers_elsewhere}");
    }
}

#[test]
fn a_turn_follows_its_own_hint_also_if_others_do_not_believe_it_any_more() {
    let mut desk = Desk::new();
    for _ in 0..2 {
        let ticket = desk.goes("first");
        desk.refused(ticket, &refusal(Some(1_000)));
        assert_eq!(desk.waits("first"), (1_000, Because::Hint));
        desk.now += 1_000;
    }
    let ticket = desk.goes("first");
    desk.refused(ticket, &refusal(Some(1_000)));
    assert_eq!(desk.waits("first"), (1_000, Because::Hint));
    assert!(desk.waits("second").0 > 4_000, "the third probe of others is after four seconds");
}

#[test]
fn only_the_refused_turn_holds_others_by_its_schedule_until_it_leaves() {
    let mut desk = Desk::new();
    let ticket = desk.goes("first");
    desk.refused(ticket, &refusal(None));
    assert_eq!(desk.waits("second").1, Because::Refused);
    desk.pacer.forget(TARGET, &"other".into(), Millis(desk.now));
    assert_eq!(desk.waits("second").1, Because::Refused);
    desk.pacer.forget(TARGET, &"first".into(), Millis(desk.now));
    desk.goes("second");
}

#[test]
fn a_probe_elsewhere_says_nothing_of_a_target_that_is_open() {
    let mut desk = Desk::new();
    desk.pacer.probed_elsewhere(TARGET, Millis(desk.now));
    let ticket = desk.goes("first");
    desk.pacer.probed_elsewhere(TARGET, Millis(desk.now));
    desk.answers(ticket);
    desk.goes("second");
}

#[test]
fn a_refusal_elsewhere_counts_unless_it_is_known_or_this_process_finds_out() {
    let mut desk = Desk::new();
    let told = |desk: &mut Desk, turn: &str, hint_ms| {
        let (turn, now) = (TurnId::from(turn), Millis(desk.now));
        desk.pacer.refused_elsewhere(TARGET, &turn, 0, hint_ms, 1_000, now);
    };
    told(&mut desk, "theirs", Some(10_000));
    assert_eq!(desk.waits("own").0, 12_000);
    // Of the same event, and of a later one.
    desk.now += 2_000;
    told(&mut desk, "another", Some(60_000));
    assert_eq!(desk.waits("own").0, 10_000);
    desk.now += 1;
    told(&mut desk, "another", Some(60_000));
    assert_eq!(desk.waits("own").0, 62_000);
    // It was not answered for a while; the next refusal without a hint is not the first.
    desk.now += 62_000;
    let probe = desk.goes("own");
    desk.now += 10_000;
    told(&mut desk, "late", Some(60_000));
    desk.answers(probe);
    assert!(!desk.pacer.is_closed(TARGET), "the own probe decides");

    let mut desk = Desk::new();
    let ticket = desk.goes("own");
    desk.now += 5_000;
    told(&mut desk, "theirs", None);
    let other = desk.pacer.admit(TARGET, &call(&"own2".into(), None, desk.now), Millis(desk.now));
    assert!(matches!(other, Admission::Wait(_)), "{other:?}");
    desk.now += 3_000;
    let probe = desk.goes("own2");
    desk.refused(probe, &refusal(Some(500)));
    assert_eq!(desk.waits("own3").0, 2_000, "as after a second refusal: the hint is not believed");
    desk.answers(ticket);
}

#[test]
fn the_next_process_knows_when_it_was_refused_and_whether_the_network_is_gone() {
    let now = Millis(100_000);
    let mut pacer = Pacer::new();
    let turn = TurnId::from("first");
    let ticket = go(&mut pacer, &call(&turn, None, now.0), now);
    pacer.refused(TARGET, ticket, &refusal(Some(60_000)), &Limits::default(), now);
    let mut next = Pacer::new();
    next.restore(TARGET, &pacer.known(TARGET, now).unwrap(), now.plus(1_000));
    next.accepted_elsewhere(TARGET, 5_000, now.plus(1_000));
    assert!(next.is_closed(TARGET), "that call was made before");
    next.accepted_elsewhere(TARGET, 500, now.plus(1_000));
    assert!(!next.is_closed(TARGET));

    let mut pacer = Pacer::new();
    let ticket = go(&mut pacer, &call(&turn, None, now.0), now);
    let failure =
        Failure { unreached: Some(Unreached::NoRoute), ..Failure::new(Category::Network, true, "no") };
    assert!(pacer.unreached(TARGET, ticket, &call(&turn, None, now.0), &failure, now).is_some());
    let (mut next, known) = (Pacer::new(), pacer.known(TARGET, now).unwrap());
    assert_eq!(known.closed_at, Some(now));
    next.restore(TARGET, &known, now);
    let other = TurnId::from("other");
    let asked = next.admit(TARGET, &call(&other, None, now.0), now);
    assert!(matches!(asked, Admission::Wait(wait) if wait.because == Because::Offline), "{asked:?}");
    let later = now.plus(5_000);
    let ticket = go(&mut next, &call(&other, None, now.0), later);
    let until = next.unreached(TARGET, ticket, &call(&other, None, now.0), &failure, later);
    assert_eq!(until, Some(later.plus(10_000)), "longer than after the first attempt");
}

#[test]
fn a_part_of_a_reported_limit_is_all_that_this_process_uses() {
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Requests, 20, 20, 60_000));
    desk.pacer.share(TARGET, 1, 4, Millis(desk.now));
    for n in 0..5 {
        desk.goes(&format!("turn {n}"));
    }
    assert_eq!(desk.waits("more").1, Because::Requests);
    desk.pacer.share(TARGET, 1, 1, Millis(desk.now));
    assert_eq!(desk.let_go(), ["more"]);
}

#[test]
fn what_one_process_made_counts_for_the_limit_that_another_one_learns() {
    let (mut one, mut other) = (Desk::new(), Desk::new());
    for n in 0..5 {
        let ticket = other.goes(&format!("turn {n}"));
        other.answers(ticket);
    }
    let now = Millis(one.now);
    let lately = other.pacer.lately(TARGET, now);
    assert_eq!(lately.made, 5);
    assert_eq!(other.pacer.lately(TARGET, now).made, 0, "told once");
    let learnt = |desk: &mut Desk| {
        let first = desk.goes("a");
        desk.answers(first);
        let second = desk.goes("b");
        desk.refused(second, &refusal(Some(57_000)));
        desk.pacer.lately(TARGET, Millis(desk.now)).rate.map(|rate| rate.calls)
    };
    let alone = learnt(&mut Desk::new()).unwrap();
    // A target is known once it was asked.
    let ticket = one.goes("known");
    one.answers(ticket);
    one.pacer.lately_elsewhere(TARGET, lately, now);
    assert_eq!(learnt(&mut one), Some(alone + 6));
}

fn call<'a>(turn: &'a TurnId, caller: Option<&'a CallerName>, now: u64) -> Call<'a> {
    Call { turn, caller, since: Millis(now), priority: Priority::Interactive, size: Size::default() }
}

#[track_caller]
fn go(pacer: &mut Pacer, call: &Call<'_>, now: Millis) -> Ticket {
    match pacer.admit(TARGET, call, now) {
        Admission::Go(ticket) => ticket,
        Admission::Wait(wait) => panic!("{wait:?}"),
    }
}

/// A tenth of a limit is kept from calls in the background, and so from a caller whose calls all are.
#[test]
fn a_caller_gets_no_higher_priority_than_its_own() {
    let mut desk = Desk::new();
    let (ann, terms) = (name("ann"), Terms { priority: Priority::Background, ..Terms::default() });
    desk.pacer.set_callers([(ann.clone(), terms)]);
    assert!(!desk.pacer.is_limited(Some(&ann)) && !desk.pacer.is_limited(None), "it has no limit");
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Requests, 100, 5, 60_000));
    let now = Millis(desk.now);
    let turn = TurnId::from("hers");
    let hers = desk.pacer.admit(TARGET, &call(&turn, Some(&ann), now.0), now);
    assert!(matches!(hers, Admission::Wait(_)), "{hers:?}");
    desk.goes("a person's");
}

/// Each is let go what it needs of the scarce tokens, not as many calls.
#[test]
fn callers_of_small_calls_get_as_many_tokens_as_those_of_large_ones() {
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Tokens, 1_000, 0, 60_000));
    desk.pacer.ended(TARGET, first, None);
    let now = Millis(desk.now);
    for n in 0..12 {
        for (caller, tokens) in [("ann", 100), ("bob", 20)] {
            let (turn, caller) = (TurnId::from(format!("{caller} {n}").as_str()), name(caller));
            let size = Size { input: tokens, ..Size::default() };
            let call = Call { size, ..call(&turn, Some(&caller), now.0) };
            assert!(matches!(desk.pacer.admit(TARGET, &call, now), Admission::Wait(_)));
        }
    }
    desk.now += 60_000;
    let gone = desk.let_go();
    let of_ann = gone.iter().take(12).filter(|turn| turn.starts_with("ann")).count();
    assert!((2..=3).contains(&of_ann), "{gone:?}");
}

#[test]
fn a_caller_has_as_many_calls_to_make_as_run_and_wait() {
    let (ann, now) = (name("ann"), Millis(START));
    let mut pacer = Pacer::new();
    pacer.set_callers([(ann.clone(), Terms { parallel: Some(3), ..Terms::default() })]);
    let turns: Vec<_> = (0..5).map(|n| TurnId::from(format!("turn {n}").as_str())).collect();
    let waiting = turns
        .iter()
        .filter(|turn| !matches!(pacer.admit(TARGET, &call(turn, Some(&ann), START), now), Admission::Go(_)));
    assert_eq!(waiting.count(), 2);
    assert_eq!(pacer.used_by_callers(now)[0].1.calls, 5);
    let limits = |pacer: &Pacer| (pacer.is_limited(Some(&ann)), pacer.is_limited_in_money(Some(&ann)));
    assert_eq!(limits(&pacer), (true, false));
    pacer.set_callers([(ann.clone(), Terms { money_per_day: Some(1), ..Terms::default() })]);
    assert_eq!(limits(&pacer), (true, true));
}

/// What a node used that tells `count` requests in this minute.
fn used(minute: u64, count: u64) -> Use {
    let mut counts = Counts::default();
    counts[Kind::RequestsPerMinute as usize] = (minute, count);
    Use { calls: 0, counts, ..Use::default() }
}

#[test]
fn what_nodes_used_that_are_gone_counts_until_the_period_ends() {
    let ann = name("ann");
    let mut pacer = Pacer::new();
    pacer.set_callers([(ann.clone(), Terms { requests_per_minute: Some(20), ..Terms::default() })]);
    let minute = START / MINUTE;
    let told = |pacer: &mut Pacer, alive: &[&str], now: u64| {
        let used = pacer.used_by_callers(Millis(now))[0].1.clone();
        let alive: Vec<String> = alive.iter().map(|name| (*name).to_owned()).collect();
        pacer.told(&ann, "own", &alive, Use { calls: 1, ..used });
        let gone = &pacer.used_by_callers(Millis(now))[0].1.gone;
        let of_minute = gone.values().map(|counts| counts[Kind::RequestsPerMinute as usize]);
        of_minute.filter(|(of, _)| *of == now / MINUTE).map(|(_, used)| used).sum::<u64>()
    };
    let alive = ["own", "n2", "n3", "n4", "n5"];
    for (node, minute, count) in [("n2", minute, 3), ("n3", minute, 4), ("n4", minute - 1, 9)] {
        pacer.used_elsewhere(&ann, node, used(minute, count));
    }
    assert_eq!(told(&mut pacer, &alive, START), 0);
    assert_eq!(told(&mut pacer, &["own", "n3", "n4", "n5"], START), 3);
    assert_eq!(told(&mut pacer, &["own", "n4", "n5"], START), 7);
    assert_eq!(told(&mut pacer, &["own", "n5"], START), 7, "that was another minute");
    // The rest is 13, all of it for the node that has something to do.
    let (mut made, now) = (0, Millis(START));
    loop {
        let turn = TurnId::from(format!("turn {made}").as_str());
        let Admission::Go(ticket) = pacer.admit(TARGET, &call(&turn, Some(&ann), START), now) else {
            break;
        };
        pacer.heard(TARGET, ticket, &Limits::default(), now);
        pacer.ended(TARGET, ticket, None);
        made += 1;
    }
    assert_eq!(made, 13);
    pacer.used_elsewhere(&ann, "n5", used(minute + 1, 2));
    assert_eq!(told(&mut pacer, &["own"], START + MINUTE), 2);
    assert_eq!(told(&mut pacer, &["own"], START + 2 * MINUTE), 0);
}
