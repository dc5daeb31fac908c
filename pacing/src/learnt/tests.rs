//! Tests what refusals teach, and what rounds without one do.

use super::*;

#[test]
fn a_minute_is_found_after_two_contradictions() {
    let mut learnt = Learnt::new();
    for n in 0..60 {
        learnt.add(Millis(10_000 + n * 50));
    }
    assert_eq!(learnt.refused(None, Millis(13_000)), Some(Millis(13_016)), "a second was the first guess");
    assert_eq!(learnt.limit().map(|(period, _)| period), Some(1_000));
    let at = learnt.refused(None, Millis(14_100)).expect("a guess");
    assert!((20_000..20_400).contains(&at.0), "{at:?}: ten seconds were the second");
    let at = learnt.refused(None, at.plus(100)).expect("a guess");
    assert!((70_000..71_000).contains(&at.0), "{at:?}: then a minute");
    assert_eq!(learnt.limit(), Some((60_000, 60)));
    assert_eq!(learnt.left(Millis(74_000)), Some(60));
}

#[test]
fn a_hint_points_to_the_period() {
    let mut learnt = Learnt::new();
    (0..60).for_each(|n| learnt.add(Millis(10_000 + n * 50)));
    learnt.refused(Some(57_000), Millis(13_000));
    assert_eq!(learnt.limit(), Some((60_000, 60)));
}

#[test]
fn what_one_process_learns_is_known_to_the_other_which_keeps_to_its_part() {
    let [mut one, mut other] = [Learnt::new(), Learnt::new()];
    for learnt in [&mut one, &mut other] {
        learnt.set_share((1, 2));
        (0..30).for_each(|n| learnt.add(Millis(10_000 + n * 100)));
    }
    let now = Millis(13_000);
    one.lately_elsewhere(other.lately(now), now);
    assert_eq!(other.lately(now).made, 0, "told once");
    assert_eq!(one.refused(Some(57_000), now), Some(Millis(70_313)), "calls of both are counted");
    assert_eq!(one.limit(), Some((60_000, 60)));

    other.lately_elsewhere(one.lately(now.plus(1_000)), now.plus(1_000));
    assert_eq!(other.limit(), Some((60_000, 60)));
    let later = Millis(80_000);
    assert_eq!(other.left(later), Some(60));
    // The pause counts for a tenth of the period.
    (0..4).for_each(|_| other.add(later));
    assert_eq!((other.left(later.plus(1_999)), other.left(later.plus(2_000))), (Some(0), Some(56)));
    // An older one changes nothing.
    let rate = Rate { calls: 5, period_ms: 1_000, ago_ms: 90_000, round_ms: 1_000, is_confirmed: true };
    other.lately_elsewhere(Lately { made: 0, rate: Some(rate) }, later);
    assert_eq!(other.limit(), Some((60_000, 60)));
}

/// A limit of a minute that a refusal at 40 s taught: so many calls as were made at these times.
fn minute(made: impl IntoIterator<Item = u64>) -> Learnt {
    let mut learnt = Learnt::new();
    made.into_iter().for_each(|at| learnt.add(Millis(at)));
    learnt.refused(Some(50_000), Millis(40_000));
    learnt
}

/// A limit of four calls in a second that was used for a round and is confirmed.
fn confirmed_second() -> Learnt {
    let mut learnt = Learnt::new();
    (0..4).for_each(|_| learnt.add(Millis(10_000)));
    learnt.refused(None, Millis(10_500));
    assert!(round(&mut learnt, 11_500, 4, true));
    learnt
}

/// Makes calls before a round ends, and calls may wait. Returns whether that confirms the limit.
fn round(learnt: &mut Learnt, ends: u64, calls: usize, others_wait: bool) -> bool {
    (0..calls).for_each(|_| learnt.add(Millis(ends - 900)));
    if others_wait {
        learnt.room_at(0, Millis(ends - 900));
    }
    let mut is_confirmed_at = |at| {
        learnt.left(Millis(at));
        learnt.limit.is_some_and(|limit| limit.is_confirmed)
    };
    assert!(!is_confirmed_at(ends - 1), "too early");
    is_confirmed_at(ends)
}

#[test]
fn a_round_confirms_a_limit_if_calls_waited_and_three_quarters_were_used() {
    let mut learnt = minute([10_000, 20_000, 30_000, 40_000]);
    assert!(!round(&mut learnt, 100_000, 0, true));
    assert!(!round(&mut learnt, 160_000, 4, false), "nobody waited");
    assert!(!round(&mut learnt, 220_000, 2, true), "half was used");
    assert!(round(&mut learnt, 280_000, 3, true));
}

#[test]
fn a_refusal_lowers_a_confirmed_limit_and_another_one_points_to_a_longer_period() {
    let mut learnt = confirmed_second();
    learnt.refused(None, Millis(11_600));
    assert_eq!(learnt.limit(), Some((1_000, 3)));
    assert!(learnt.limit.is_some_and(|limit| limit.is_confirmed));
    // The hint is longer than the period.
    let mut learnt = confirmed_second();
    learnt.refused(Some(30_000), Millis(11_600));
    assert_eq!(learnt.limit(), Some((60_000, 8)));
    assert!(learnt.limit.is_some_and(|limit| !limit.is_confirmed));
    // Few calls are known to have been made: others may have made some.
    let mut learnt = minute([20_000; 60]);
    assert!(round(&mut learnt, 100_000, 60, true));
    (0..10).for_each(|_| learnt.add(Millis(165_000)));
    learnt.refused(None, Millis(170_000));
    assert_eq!(learnt.limit(), Some((60_000, 45)));
    assert_eq!(Learnt::new().refused(None, Millis(10_000)), None, "no call was made");
    // There is no longer period.
    let mut learnt = minute([20_000; 4]);
    assert!(learnt.refused(None, Millis(41_000)).is_some());
    assert_eq!(learnt.limit(), Some((60_000, 4)));
}

#[test]
fn rounds_are_short_after_a_short_hint_that_one_second_does_not_explain() {
    for (hint_ms, round_ms) in [(Some(1_000), 5_000), (Some(1_001), 10_000), (None, 10_000)] {
        let mut learnt = Learnt::new();
        (0..4).for_each(|_| learnt.add(Millis(10_000)));
        learnt.refused(None, Millis(10_100));
        learnt.refused(hint_ms, Millis(11_500));
        assert_eq!(learnt.limit.map(|limit| limit.round_ms), Some(round_ms), "{hint_ms:?}");
    }
}

#[test]
fn those_in_line_wait_for_as_many_calls_to_be_old_enough_and_are_spread() {
    let mut learnt = minute([10_000, 20_000, 30_000, 40_000]);
    let mut room_at = |others| learnt.room_at(others, Millis(40_000)).0;
    assert_eq!([0, 1, 4].map(&mut room_at), [70_313, 80_625, 100_000]);
}

#[test]
fn a_call_soon_after_a_refusal_can_hardly_be_accepted_unless_the_limit_is_being_tried() {
    let mut learnt = minute([20_000; 4]);
    assert_eq!(learnt.no_room_before(Millis(50_000)), Some(Millis(57_500)));
    if let Some(limit) = &mut learnt.limit {
        (0..4).for_each(|_| limit.calls.was_calm());
    }
    assert_eq!(learnt.no_room_before(Millis(50_000)), None);
}

#[test]
fn what_a_refusal_taught_can_be_undone_once_or_forgotten() {
    let mut learnt = Learnt::new();
    learnt.add(Millis(10_000));
    learnt.refused(None, Millis(10_100));
    learnt.refused(None, Millis(11_500));
    assert_eq!(learnt.limit(), Some((10_000, 1)));
    (0..2).for_each(|_| learnt.undo());
    assert_eq!(learnt.limit(), Some((1_000, 1)));
    learnt.forget();
    assert_eq!(learnt.limit(), None);
}

#[test]
fn a_limit_that_counted_only_a_call_that_was_not_accepted_is_forgotten() {
    let learnt = || {
        let mut learnt = Learnt::new();
        learnt.add(Millis(10_000));
        learnt.refused(None, Millis(10_100));
        learnt
    };
    let mut one = learnt();
    one.take_back(Millis(10_000));
    assert_eq!((one.limit(), one.lately(Millis(10_200)).made), (None, 0));
    // A call made later was not counted.
    let mut one = learnt();
    one.add(Millis(20_000));
    one.take_back(Millis(20_000));
    assert_eq!((one.limit(), one.lately(Millis(20_000)).made), (Some((1_000, 1)), 1));
}

#[test]
fn a_limit_of_another_process_counts_if_it_was_learnt_later() {
    let learnt = minute([20_000; 60]);
    let told = |rate: Rate, now| {
        let mut learnt = learnt.clone();
        learnt.lately_elsewhere(Lately { made: 0, rate: Some(rate) }, Millis(now));
        learnt.limit.map(|limit| (limit.calls, limit.round_ms))
    };
    let known = Search::at(60);
    let rate = Rate { calls: 20, period_ms: 60_000, ago_ms: 0, round_ms: 1, is_confirmed: false };
    assert_eq!(told(rate, 42_000), Some((known, 60_000)), "it may be the same");
    assert_eq!(told(rate, 42_001), Some((known.lowered_to(20), 30_000)));
    let other = Rate { period_ms: 10_000, ..rate };
    assert_eq!(told(other, 42_001), Some((Search::at(20), 5_000)));
}
