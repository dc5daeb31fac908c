//! Limits of callers: never exceeded, and never left unused while calls wait; over a restart and on several nodes, too.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod world;

use everturn_kernel::Millis;
use everturn_pacing::{Admission, Because, Call, Kind, Limits, Priority, Size, Terms};
use everturn_wire::{CallerName, Category, Failure, TurnId};
use world::{ESTIMATE, MINUTE, START, World, ann, pacer};

#[track_caller]
fn check(used: &[f64], most: f64) {
    assert!(used.len() >= 5, "{} periods", used.len());
    assert!(used.iter().all(|used| *used <= most), "exceeded: {used:?}");
    // The first may be shorter than what has to ramp up.
    assert!(used[1..].iter().all(|used| *used >= 0.97), "unused: {used:?}");
}

#[test]
fn requests_in_a_minute() {
    for limit in [1, 7, 60, 1_000] {
        let mut world = World::new(Terms { requests_per_minute: Some(limit), ..Terms::default() }, 1, 3_000);
        world.want(0, 10 * limit as usize);
        world.play(START + 8 * MINUTE + 1_000);
        check(&world.used(MINUTE, limit, |_| 1), 1.0);
    }
}

#[test]
fn a_restart_gives_nothing_twice() {
    let mut world = World::new(Terms { requests_per_minute: Some(100), ..Terms::default() }, 1, 3_000);
    world.want(0, 2_000);
    for n in 1..40 {
        world.play(START + n * 17_000);
        world.restart(0);
    }
    check(&world.used(MINUTE, 100, |_| 1), 1.0);
}

#[test]
fn tokens_in_a_minute_and_in_a_day() {
    let day = 24 * 60 * MINUTE;
    let minute = Terms { tokens_per_minute: Some(60_000), ..Terms::default() };
    for (terms, period, limit) in [
        (minute, MINUTE, 60_000),
        (Terms { tokens_per_day: Some(900_000), ..Terms::default() }, day, 900_000),
    ] {
        let mut world = World::new(terms, 1, 2_000);
        world.want(0, 15_000);
        world.play(START + 7 * period);
        // By as much as the calls under way were estimated too low: all of a minute's begin at once here.
        check(&world.used(period, limit, |size| size.input + size.output), 1.05);
    }
}

#[test]
fn calls_at_once() {
    let mut world = World::new(Terms { parallel: Some(10), ..Terms::default() }, 1, 3_000);
    world.want(0, 5_000);
    world.play(START + 20 * MINUTE);
    assert_eq!(world.most_at_once, 10);
    let ideal = 20 * MINUTE / 3_000 * 10;
    assert!(world.began.len() as u64 * 100 >= ideal * 97, "{} of {ideal}", world.began.len());
}

#[test]
fn three_nodes_share_a_limit() {
    for shares in [[1_000, 1_000, 1_000], [4_000, 300, 20], [3_000, 0, 0]] {
        for limit in [5, 60, 300] {
            let terms = Terms { requests_per_minute: Some(limit), ..Terms::default() };
            let mut world = World::new(terms, 3, 3_000);
            // They have been there for a while.
            world.play(START + 3_000);
            for (node, calls) in shares.into_iter().enumerate() {
                world.want(node, calls);
            }
            world.play(START + 8 * MINUTE + 1_000);
            let used = world.used(MINUTE, limit, |_| 1);
            assert!(used.iter().all(|used| *used <= 1.1), "{shares:?}, {limit}: {used:?}");
            assert!(used[1..].iter().all(|used| *used >= 0.97), "{shares:?}, {limit}: {used:?}");
        }
    }
}

#[test]
fn three_nodes_share_calls_at_once() {
    let mut world = World::new(Terms { parallel: Some(30), ..Terms::default() }, 3, 3_000);
    world.play(START + 3_000);
    (0..3).for_each(|node| world.want(node, 2_000));
    world.play(START + 8 * MINUTE);
    assert!(world.most_at_once <= 33, "{}", world.most_at_once);
    let ideal = 8 * MINUTE / 3_000 * 30;
    assert!(world.began.len() as u64 * 100 >= ideal * 96, "{} of {ideal}", world.began.len());
}

/// Each call is larger than a third of the limit.
#[test]
fn three_nodes_let_large_calls_go_in_turn() {
    let limit = 800;
    let mut world = World::new(Terms { tokens_per_minute: Some(limit), ..Terms::default() }, 3, 3_000);
    world.play(START + 3_000);
    (0..3).for_each(|node| world.want(node, 100));
    world.play(START + 20 * MINUTE);
    let calls = world.used(MINUTE, 1, |_| 1);
    // Two, if the first one was smaller than estimated.
    assert!(calls.len() == 20 && calls[1..].iter().all(|calls| (1.0..=2.0).contains(calls)), "{calls:?}");
    assert!((0..3).all(|node| world.waiting(node) <= 96), "each had its turn");
}

#[test]
fn a_node_with_much_to_do_leaves_room_for_the_call_of_another() {
    for terms in [
        Terms { parallel: Some(4), ..Terms::default() },
        Terms { parallel: Some(1), ..Terms::default() },
        Terms { requests_per_minute: Some(60), ..Terms::default() },
    ] {
        let mut world = World::new(terms, 3, 3_000);
        world.play(START + 3_000);
        world.want(0, 3_000);
        world.play(START + 5 * MINUTE);
        world.want(2, 1);
        world.play(START + 7 * MINUTE);
        assert!(world.waiting(2) == 0 && world.waiting(0) > 0, "{terms:?}");
        assert!(terms.parallel.is_none_or(|most| world.most_at_once as u64 <= most), "{terms:?}");
    }
}

/// A limit: its terms, its period, how much it allows, and what counts.
type Limited = (Terms, u64, u64, fn(Size) -> u64);

/// Ten thousand calls against each kind: on one node, with a restart in the middle, and on three nodes.
#[test]
fn no_limit_is_exceeded_or_left_unused() {
    let none = Terms::default();
    let (minute, day) = (MINUTE, 24 * 60 * MINUTE);
    let kinds: [Limited; 4] = [
        (Terms { requests_per_minute: Some(1_000), ..none }, minute, 1_000, |_| 1),
        (Terms { tokens_per_minute: Some(500_000), ..none }, minute, 500_000, |size| {
            size.input + size.output
        }),
        (Terms { tokens_per_day: Some(500_000), ..none }, day, 500_000, |size| size.input + size.output),
        (Terms { money_per_day: Some(1_300_000), ..none }, day, 1_300_000, |size| size.money),
    ];
    for (terms, period, limit, amount) in kinds {
        for (nodes, restarts, most) in [(1, false, 1.0), (1, true, 1.0), (3, false, 1.1)] {
            let mut world = World::new(terms, nodes, 3_000);
            world.play(START + 3_000);
            (0..nodes).for_each(|node| world.want(node, 10_000 / nodes));
            // While calls run, and when the limit is used up.
            for at in [0, 1_500, 20_000].into_iter().filter(|_| restarts) {
                world.play((START / period + 4) * period + at);
                world.restart(0);
            }
            world.play(START + 8 * period);
            let used = world.used(period, limit, amount);
            // By the error of the estimates of what is under way.
            let most = if limit == 1_000 { most } else { most + 0.05 };
            assert!(used.len() >= 7 && used.iter().all(|used| *used <= most), "{terms:?}, {nodes}: {used:?}");
            assert!(used[1..].iter().all(|used| *used >= 0.97), "{terms:?}, {nodes}: {used:?}");
        }
    }
}

/// The same of calls at once, whatever is left of a process that ended: its calls end with it.
#[test]
fn calls_at_once_are_neither_exceeded_nor_left_unused() {
    for (nodes, restarts, most) in [(1, false, 50), (1, true, 50), (3, false, 55)] {
        let mut world = World::new(Terms { parallel: Some(50), ..Terms::default() }, nodes, 3_000);
        world.play(START + 3_000);
        (0..nodes).for_each(|node| world.want(node, 10_000 / nodes));
        for at in [4_500, 100_000, 255_000].into_iter().filter(|_| restarts) {
            world.play(START + at);
            world.restart(0);
        }
        world.play(START + 9 * MINUTE);
        assert!(world.most_at_once <= most, "{nodes}: {}", world.most_at_once);
        let (began, ideal) = (world.began.len() as u64, (9 * MINUTE - 3_000) / 3_000 * 50);
        assert!(began * 100 >= ideal * 97, "{nodes}: {began} of {ideal}");
    }
}

#[test]
fn what_a_caller_is_told_and_what_counts() {
    let terms = Terms { requests_per_minute: Some(2), priority: Priority::Background, ..Terms::default() };
    let (mut pacer, now, name) = (pacer(terms), Millis(START), ann());
    let turns: Vec<TurnId> = (0..9).map(|n| TurnId::from(n.to_string())).collect();
    let call = |n: usize, caller: Option<&'static CallerName>| Call {
        turn: &turns[n],
        caller,
        since: now,
        priority: Priority::Interactive,
        size: ESTIMATE,
    };
    let name: &'static CallerName = Box::leak(Box::new(name));
    let Admission::Go(refused) = pacer.admit("a", &call(0, Some(name)), now) else { panic!("it waits") };
    // A refusal by the provider does not count, a bad request does.
    pacer.refused("a", refused, &Failure::new(Category::Overloaded, true, ""), &Limits::default(), now);
    let Admission::Go(bad) = pacer.admit("a", &call(0, Some(name)), now) else { panic!("it waits") };
    pacer.refused("a", bad, &Failure::new(Category::InvalidRequest, false, ""), &Limits::default(), now);
    let Admission::Go(_) = pacer.admit("b", &call(1, Some(name)), now) else { panic!("it waits") };
    // Whatever it calls, and whoever asked.
    let Admission::Wait(wait) = pacer.admit("a", &call(2, Some(name)), now) else { panic!("it goes") };
    let next = Millis((START / MINUTE + 1) * MINUTE);
    assert_eq!((wait.until, wait.because), (next, Because::CallerLimit));
    assert_eq!(pacer.insist("a", &call(3, Some(name)), now), Err(wait));
    let held = pacer.held(Some(name), ESTIMATE, now).unwrap();
    assert_eq!((held.kind, held.limit), (Kind::RequestsPerMinute, 2));
    // Others are not held, and another limit holds at once.
    assert!(matches!(pacer.admit("a", &call(4, None), now), Admission::Go(_)));
    pacer.set_callers([(name.clone(), Terms { requests_per_minute: Some(3), ..terms })]);
    assert_eq!(pacer.let_go(9, now), [turns[2].clone()]);
    // A call that would never fit goes when nothing else was used.
    pacer.set_callers([(name.clone(), Terms { tokens_per_minute: Some(100), ..Terms::default() })]);
    assert!(matches!(pacer.admit("b", &call(5, Some(name)), now), Admission::Wait(_)));
    assert_eq!(pacer.let_go(9, next), [turns[5].clone()]);
}
