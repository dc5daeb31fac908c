use everturn_wire::Unreached;

use std::sync::Arc;

use super::*;
use crate::timer::{Timers, Wakes, Woken};

/// Wakes nobody.
struct Nobody;

#[async_trait::async_trait]
impl Wakes for Nobody {
    async fn wake(&self, _: &ConversationId) -> Woken {
        Woken::Done
    }
}

fn limited() -> Failure {
    Failure::new(Category::RateLimited, true, "HTTP 429: slow down")
}

/// Returns how long a turn is put off at this time; `None` = it may ask.
fn waits(gates: &Gates, turn: &str, now: u64) -> Option<u64> {
    gates.enter("m", &"c".into(), &turn.into(), Millis(now)).map(|hold| hold.wait_ms)
}

/// A gate that is closed until 10 s by the turn `first`.
fn closed() -> Gates {
    let gates = Gates::default();
    gates.limited("m", &"first".into(), limited(), Millis(10_000), Millis(0));
    gates
}

#[test]
fn others_wait_as_long_as_the_one_that_was_refused_and_a_little_more() {
    let gates = closed();
    assert_eq!(gates.enter("other", &"c".into(), &"a".into(), Millis(1)), None);
    let hold = gates.enter("m", &"c".into(), &"a".into(), Millis(1_000)).unwrap();
    assert_eq!((hold.wait_ms, hold.shared, hold.in_budget), (9_500, true, true));
    assert_eq!(hold.failure.message, "HTTP 429: slow down");
    assert_eq!(waits(&gates, "b", 1_000), Some(10_500));
    assert_eq!(waits(&gates, "c", 1_000), Some(11_000));
}

#[test]
fn the_one_that_was_refused_asks_first_and_alone() {
    let gates = closed();
    assert_eq!(waits(&gates, "a", 10_000), Some(2_500), "the first one may be late");
    assert_eq!(waits(&gates, "first", 10_001), None);
    assert_eq!(waits(&gates, "a", 10_002), Some(1_500), "it is asking");
    gates.limited("m", &"first".into(), limited(), Millis(30_000), Millis(11_000));
    assert_eq!(waits(&gates, "a", 12_500), Some(18_000));
}

#[test]
fn another_one_asks_in_the_place_of_one_that_is_gone() {
    let gates = closed();
    assert_eq!(waits(&gates, "a", 12_000), None, "the first one did not come");
    gates.left("m", &"gone".into(), Millis(12_050));
    assert!(waits(&gates, "b", 12_060).is_some(), "it was not that one that asked");
    gates.left("m", &"a".into(), Millis(12_100));
    assert_eq!(waits(&gates, "b", 12_101), None, "that one was stopped");
}

#[test]
fn once_it_answers_the_pace_doubles() {
    let gates = closed();
    assert_eq!(waits(&gates, "first", 10_000), None);
    gates.answered("m", Millis(10_000), None, Millis(10_500));
    let let_go = |now: u64| (0..100).filter(|n| waits(&gates, &format!("t{n}"), now).is_none()).count();
    assert_eq!([10_600, 11_600, 12_600, 13_600].map(let_go), [2, 2, 4, 8]);
    assert_eq!(waits(&gates, "late", 30_500), None);
    assert!(gates.lock().gates.is_empty(), "nobody needs it any more");
}

#[test]
fn of_several_that_are_refused_at_once_the_longest_wait_counts() {
    let gates = closed();
    gates.limited("m", &"second".into(), limited(), Millis(20_000), Millis(100));
    gates.limited("m", &"third".into(), limited(), Millis(5_000), Millis(200));
    assert_eq!(waits(&gates, "first", 10_000), Some(10_000));
    assert_eq!(waits(&gates, "first", 20_000), None);
}

/// A call of the turn, made at 1 s.
fn call(gates: Arc<Gates>, turn: &str) -> Pass {
    Pass {
        gates: Some(gates),
        clock: Arc::new(crate::SystemClock::new()),
        timers: Arc::new(Timers::new(Arc::new(crate::SystemClock::new()), Nobody)),
        target: "m".to_owned(),
        turn: turn.into(),
        asked_at: Millis(1_000),
        health: None,
        waits_for_network: true,
        quota: None,
    }
}

fn unreached(why: Unreached) -> Failure {
    Failure { unreached: Some(why), ..Failure::new(Category::Network, true, "connection refused") }
}

#[test]
fn a_target_that_never_answered_may_simply_not_be_there() {
    let gates = Arc::<Gates>::default();
    let refused = unreached(Unreached::NoConnection);
    assert_eq!(gates.failed(&call(gates.clone(), "a"), &refused, Millis(1_100)), None);
    let hold = gates.failed(&call(gates.clone(), "a"), &unreached(Unreached::NoRoute), Millis(1_100));
    let message = hold.expect("without a route to it nothing else is the matter").failure.message;
    assert!(message.starts_with("Offline, waiting for the network"), "{message}");
}

#[test]
fn while_the_network_is_gone_one_turn_looks_for_it_and_nothing_is_used_up() {
    let gates = Arc::<Gates>::default();
    gates.answered("m", Millis(0), None, Millis(500));
    let refused = unreached(Unreached::NoConnection);
    let mut waited = Vec::new();
    let mut now = 1_100;
    for _ in 0..6 {
        let hold = gates.failed(&call(gates.clone(), "a"), &refused, Millis(now)).unwrap();
        assert!(!hold.in_budget && !hold.shared, "{hold:?}");
        assert_eq!(
            hold.failure.message,
            "No connection, waiting for the provider or the network: connection refused"
        );
        let other = gates.enter("m", &"c".into(), &"b".into(), Millis(now)).unwrap();
        assert!(other.shared && !other.in_budget);
        waited.push(hold.wait_ms);
        now += hold.wait_ms;
        assert_eq!(waits(&gates, "a", now), None);
    }
    assert_eq!(waited, [5_000, 10_000, 20_000, 30_000, 30_000, 30_000]);
}

#[test]
fn while_others_answer_it_is_not_the_network() {
    let gates = Arc::<Gates>::default();
    let refused = unreached(Unreached::NoName);
    gates.answered("m", Millis(0), None, Millis(500));
    gates.answered("other", Millis(1_000), None, Millis(1_050));
    assert_eq!(gates.failed(&call(gates.clone(), "a"), &refused, Millis(1_100)), None);
}

#[test]
fn a_target_that_was_gone_for_a_day_is_down() {
    let gates = Arc::<Gates>::default();
    gates.answered("m", Millis(0), None, Millis(500));
    let refused = unreached(Unreached::NoConnection);
    assert!(gates.failed(&call(gates.clone(), "a"), &refused, Millis(500 + KNOWN_MS)).is_some());
    assert_eq!(gates.failed(&call(gates.clone(), "a"), &refused, Millis(501 + KNOWN_MS)), None);
}

#[test]
fn a_call_from_before_the_limit_opens_nothing() {
    let gates = Arc::<Gates>::default();
    gates.limited("m", &"first".into(), limited(), Millis(10_000), Millis(2_000));
    gates.answered("m", Millis(1_000), None, Millis(3_000));
    let down = Failure::new(Category::ServerError, true, "HTTP 500");
    assert_eq!(gates.failed(&call(gates.clone(), "old"), &down, Millis(3_000)), None);
    assert_eq!(waits(&gates, "a", 3_000), Some(7_500));
    gates.answered("m", Millis(4_000), None, Millis(5_000));
    assert_eq!(waits(&gates, "a", 5_000), None, "a person asked since, and was answered");
}

#[test]
fn turns_that_lose_the_network_together_wait_as_long_as_the_first_of_them() {
    let gates = Arc::<Gates>::default();
    gates.answered("m", Millis(0), None, Millis(500));
    let refused = unreached(Unreached::NoConnection);
    let lost =
        |turn: &str, now| gates.failed(&call(gates.clone(), turn), &refused, Millis(now)).unwrap().wait_ms;
    assert_eq!([lost("a", 1_000), lost("b", 1_000), lost("c", 2_000)], [5_000, 5_000, 4_000]);
}

#[test]
fn when_it_answers_early_those_who_wait_are_let_go_of_one_after_the_other() {
    let gates = closed();
    for id in ["b", "a", "c"] {
        gates.enter("m", &id.into(), &id.into(), Millis(1_000)).unwrap();
    }
    assert!(!gates.lets_go_of(&"a".into()), "it is closed");
    let woken = gates.answered("m", Millis(2_000), None, Millis(2_500));
    let expected = [(3_000, "b"), (4_000, "a"), (4_500, "c")];
    assert_eq!(woken, expected.map(|(at, id)| (Millis(at), id.into())), "in the order in which they came");
    assert!(gates.lets_go_of(&"a".into()) && !gates.lets_go_of(&"a".into()));
    gates.limited("m", &"d".into(), limited(), Millis(20_000), Millis(3_100));
    assert!(!gates.lets_go_of(&"c".into()), "it is limited again");

    let gates = closed();
    gates.enter("m", &"b".into(), &"b".into(), Millis(1_000)).unwrap();
    assert_eq!(gates.answered("m", Millis(10_000), None, Millis(10_000)), [], "they are about to come");
}

/// A gate that opened at 10 s, with an answer that reported this quota.
fn opened(limit: Option<u32>, remaining: u32, reset_ms: u64) -> Gates {
    let gates = closed();
    assert_eq!(waits(&gates, "first", 10_000), None);
    let quota = RequestQuota { limit, remaining, reset_ms };
    gates.answered("m", Millis(10_000), Some(quota), Millis(10_000));
    gates
}

/// Returns how many of a hundred turns may ask at this time.
fn asking(gates: &Gates, now: u64) -> usize {
    (0..100).filter(|n| waits(gates, &format!("t{n}"), now).is_none()).count()
}

#[test]
fn no_more_turns_ask_in_a_window_than_the_provider_says_are_left() {
    let gates = opened(Some(10), 5, 30_000);
    assert_eq!([10_000, 11_000, 12_000, 39_999].map(|now| asking(&gates, now)), [2, 2, 1, 0]);
    assert_eq!(waits(&gates, "late", 39_999), Some(1 + 8_062), "behind 199 that wait for its end");
    assert_eq!([40_000, 60_000].map(|now| asking(&gates, now)), [10, 0], "all of the next one");
}

#[test]
fn a_window_becomes_no_larger_before_it_ends() {
    let gates = opened(Some(10), 5, 30_000);
    let hear = |remaining, asked_at, now| {
        let quota = RequestQuota { limit: None, remaining, reset_ms: 20_000 };
        gates.answered("m", Millis(asked_at), Some(quota), Millis(now));
    };
    hear(9, 10_000, 15_000);
    assert_eq!(asking(&gates, 15_000), 5, "an answer that was overtaken");
    hear(3, 10_000, 40_000);
    assert_eq!(asking(&gates, 40_000), 3, "the next window, of which others used a part");
    assert_eq!([59_999, 60_000].map(|now| asking(&gates, now)), [0, 10]);
}

#[test]
fn a_window_without_a_limit_lets_as_many_ask_as_before_and_at_least_one() {
    let gates = opened(None, 0, 1_000);
    assert_eq!([10_000, 10_999, 11_000, 12_000].map(|now| asking(&gates, now)), [0, 0, 1, 0]);
    let gates = opened(Some(1), 0, 1_000);
    assert_eq!([10_000, 11_000, 70_999, 71_000].map(|now| asking(&gates, now)), [0, 1, 0, 1]);
}

#[test]
fn a_gate_is_gone_only_after_a_window_that_had_room_for_all() {
    let gates = opened(Some(10), 5, 30_000);
    assert_eq!([39_000, 45_000].map(|now| asking(&gates, now)), [5, 10]);
    assert_eq!(asking(&gates, 104_999), 0);
    assert_eq!(waits(&gates, "one", 105_000), None);
    assert_eq!(gates.lock().gates.len(), 1, "the window before it put turns off");
    assert_eq!(asking(&gates, 165_000), 100);
    assert!(gates.lock().gates.is_empty());
}

#[test]
fn a_refusal_that_names_the_limit_bounds_the_first_window() {
    let gates = Arc::<Gates>::default();
    let quota = RequestQuota { limit: Some(3), remaining: 0, reset_ms: 60_000 };
    let refused = Failure { hint_ms: Some(9_000), ..limited() };
    let call = Pass { quota: Some(quota), ..call(gates.clone(), "first") };
    assert_eq!(gates.failed(&call, &refused, Millis(1_000)), None);
    assert_eq!(waits(&gates, "first", 10_000), None);
    gates.answered("m", Millis(10_000), None, Millis(10_000));
    assert_eq!([10_000, 15_000, 69_000].map(|now| asking(&gates, now)), [2, 1, 0]);
}
