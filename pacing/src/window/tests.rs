//! Tests what is left of a reported limit, and how much of that is this process' part.

use super::*;

const START: Millis = Millis(100_000);

fn told(remaining: u64, reset_ms: u64) -> Told {
    Told { what: What::Requests, limit: Some(100), remaining, reset_ms }
}

/// A limit of 100 that ends in half a minute.
fn window(remaining: u64) -> Window {
    Window::new(told(remaining, 30_000), Ticket(1), VecDeque::new(), START)
}

/// One that is refilled in a minute, and has 60 left.
fn bucket() -> (Window, Millis) {
    let (mut window, now) = (window(50), START.plus(6_000));
    window.hear(told(60, 24_000), Ticket(1), now);
    assert!(window.refills());
    (window, now)
}

/// The largest call that this process may make, if it may make less than half of the limit.
fn most(window: &Window, now: Millis) -> Option<u64> {
    (0..50).rev().find(|amount| window.fits(*amount, now))
}

#[test]
fn calls_count_for_all_and_for_this_process_part_until_they_are_taken_back() {
    let mut window = window(100);
    window.share((1, 2), START);
    let left = |window: &Window| (window.left(START), most(window, START));
    window.take(Ticket(2), 10);
    assert_eq!(left(&window), (90, Some(40)));
    window.share((1, 2), START);
    window.reserve(5);
    assert_eq!(left(&window), (85, Some(35)));
    window.take_reserved(Ticket(3), 5);
    assert_eq!(left(&window), (85, Some(35)));
    window.reserve(7);
    assert_eq!(left(&window), (78, Some(28)));
    window.give_back(7);
    assert_eq!(left(&window), (85, Some(35)));
    (0..2).for_each(|_| window.take_back(Ticket(2)));
    assert_eq!(left(&window), (95, Some(45)));
    window.correct(Ticket(3), 8);
    window.correct(Ticket(2), 8);
    assert_eq!(left(&window), (92, Some(42)));
    // What was kept for a call still is when the next window begins, and nothing else.
    window.reserve(7);
    let next = window.resets_at();
    window.roll(next);
    window.take_back(Ticket(3));
    assert_eq!(window.left(next), 93);
}

#[test]
fn a_report_counts_the_calls_up_to_its_own() {
    let mut window = window(50);
    window.take(Ticket(2), 10);
    window.take(Ticket(3), 20);
    window.hear(told(41, 30_000), Ticket(2), START.plus(1));
    assert_eq!(window.left(START.plus(1)), 41 - 20);
    window.hear(told(11, 30_000), Ticket(1), START.plus(2));
    assert_eq!(window.left(START.plus(1)), 41 - 20, "it was overtaken");
    window.hear(Told { limit: Some(200), ..told(20, 120_000) }, Ticket(3), START.plus(1));
    assert_eq!((window.left(START.plus(1)), window.limit()), (20, 200));
    let next = window.resets_at();
    window.roll(next);
    assert_eq!(window.resets_at(), next.plus(120_000));
}

#[test]
fn the_first_report_knows_nothing_of_later_calls() {
    let since = VecDeque::from([(Ticket(2), 3), (Ticket(3), 4)]);
    let told = Told { limit: None, ..told(50, 90_000) };
    let mut window = Window::new(told, Ticket(1), since, START);
    assert_eq!((window.left(START), window.limit()), (43, 51));
    window.hear(Told { remaining: 900, ..told }, Ticket(4), START.plus(1_000));
    assert_eq!(window.limit(), 900, "it was nearly used up then");
    window.roll(START.plus(91_000));
    assert_eq!(window.resets_at(), START.plus(181_000));
}

#[test]
fn a_window_begins_anew_when_it_ends_even_if_nobody_looked_for_a_while() {
    for (after_ms, left, resets_ms) in
        [(29_999, 7, 30_000), (30_000, 100, 90_000), (89_999, 100, 90_000), (180_000, 100, 210_000)]
    {
        let mut window = window(7);
        window.roll(START.plus(after_ms));
        let seen = (window.left(START.plus(after_ms)), window.resets_at());
        assert_eq!(seen, (left, START.plus(resets_ms)), "{after_ms}");
    }
}

#[test]
fn who_used_more_than_its_part_goes_without_the_next_one_and_nobody_saves_up() {
    for (used, next) in [(60, Some(40)), (200, Some(0)), (10, Some(49))] {
        let mut window = window(100);
        window.share((1, 2), START);
        window.take(Ticket(2), used);
        window.roll(START.plus(30_000));
        if used == 10 {
            window.take(Ticket(3), 1);
        }
        assert_eq!(most(&window, START.plus(30_000)), next, "{used}");
    }
}

#[test]
fn calls_under_way_come_out_of_this_process_part_and_a_larger_part_adds_to_what_is_left_of_it() {
    let shared = |under_way| {
        let since = VecDeque::from([(Ticket(2), under_way)]);
        let mut window = Window::new(told(40, 30_000), Ticket(1), since, START);
        window.share((1, 4), START);
        window
    };
    let mut window = shared(3);
    assert_eq!(most(&window, START), Some(7));
    window.share((2, 4), START);
    assert_eq!(most(&window, START), Some(32));
    window.share((1, 4), START);
    assert_eq!(most(&window, START), Some(7));
    // No more than a whole part is owed.
    let mut window = shared(200);
    window.share((2, 4), START);
    window.roll(START.plus(30_000));
    window.take(Ticket(3), 1);
    assert_eq!(most(&window, START.plus(30_000)), Some(49));
}

#[test]
fn parts_are_rounded_and_a_call_larger_than_a_part_fits_a_whole_one() {
    let mut window = window(100);
    window.share((2, 3), START);
    assert!(window.fits(100, START));
    window.take(Ticket(2), 66);
    assert!(window.fits(1, START) && !window.fits(2, START), "66.7, so 67");
    let (mut bucket, now) = bucket();
    bucket.share((2, 3), now);
    bucket.take(Ticket(2), 39);
    assert!(bucket.fits(1, now));
    bucket.hear(told(60, 24_000), Ticket(2), now);
    bucket.take(Ticket(3), 1);
    assert!(bucket.fits(0, now) && !bucket.fits(1, now), "that comes soon");
}

#[test]
fn a_window_is_refilled_if_more_is_left_than_calls_explain() {
    for (after_ms, remaining, refills) in
        [(1, 52, false), (1, 53, true), (0, 53, false), (29_999, 53, true), (30_000, 53, false)]
    {
        let mut window = window(60);
        window.take(Ticket(2), 10);
        window.take(Ticket(3), 10);
        window.hear(told(remaining, 30_000), Ticket(2), START.plus(after_ms));
        assert_eq!(window.refills(), refills, "{remaining} after {after_ms} ms");
    }
}

#[test]
fn a_bucket_has_room_when_enough_was_refilled() {
    let (mut bucket, now) = bucket();
    let left = [0, 599, 600, 24_000, 60_000].map(|ms| bucket.left(now.plus(ms)));
    assert_eq!(left, [60, 60, 61, 100, 100]);
    let after_ms = |bucket: &Window, amount| bucket.room_at(amount, now).since(now);
    assert_eq!([60, 70, 500].map(|amount| after_ms(&bucket, amount)), [0, 6_000, 24_000]);
    bucket.take(Ticket(2), 5);
    assert_eq!(after_ms(&bucket, 70), 9_000);
    bucket.share((2, 4), now);
    assert_eq!([25, 26, 70].map(|amount| after_ms(&bucket, amount)), [0, 1_200, 18_000]);
    let window = window(60);
    assert_eq!([60, 61].map(|amount| window.room_at(amount, START).since(START)), [0, 30_000]);
}

#[test]
fn this_process_part_of_a_bucket_grows_with_it() {
    let (mut bucket, mut now) = bucket();
    bucket.share((1, 2), now);
    assert_eq!([0, 6_000].map(|ms| most(&bucket, now.plus(ms))), [Some(30), Some(35)]);
    // Reports come more often than one is refilled.
    for n in 0..40 {
        now = now.plus(150);
        bucket.hear(told(60 + n / 4, 24_000), Ticket(1), now);
    }
    assert_eq!(most(&bucket, now), Some(35));
    bucket.take(Ticket(2), 2);
    bucket.hear(told(20, 24_000), Ticket(1), now);
    let left = [0, 6_000].map(|ms| most(&bucket, now.plus(ms)));
    assert_eq!(left, [Some(18), Some(23)], "no more than there is");
    now = now.plus(300_000);
    bucket.hear(told(100, 1_000), Ticket(2), now);
    bucket.take(Ticket(3), 1);
    assert_eq!(most(&bucket, now), Some(49), "no more than a whole part");
}

/// The time until it is whole moves away as more is used: from 14 s after the start, when 20 were missing.
#[test]
fn a_window_is_refilled_if_its_end_moves_in_proportion_to_what_is_missing() {
    let refills = |used, reset_ms| {
        let mut window = window(90);
        window.take(Ticket(2), 10);
        window.hear(told(80, 13_000), Ticket(2), START.plus(1_000));
        window.take(Ticket(3), used);
        window.hear(told(80 - used, reset_ms), Ticket(3), START.plus(2_000));
        let now = START.plus(2_000);
        window.refills().then(|| window.room_at(90, now).since(now))
    };
    assert_eq!(refills(10, 12_000), None, "it did not move");
    assert_eq!([15_999, 16_000].map(|ms| refills(10, ms)), [None, Some(10_667)]);
    assert_eq!(refills(10, 18_000), Some(12_000));
    assert_eq!(refills(9, 17_400), None, "too little was used to tell");
}

#[test]
fn how_fast_a_window_is_refilled_is_measured_from_when_least_was_missing() {
    let mut window = window(90);
    for (at, remaining, reset_ms) in [(1_000, 80, 6_000), (4_000, 90, 3_000), (5_000, 70, 9_000)] {
        window.hear(told(remaining, reset_ms), Ticket(1), START.plus(at));
    }
    let now = START.plus(5_000);
    assert_eq!(window.room_at(71, now), now.plus(300), "in half a minute from empty to whole");
}
