//! One situation each: what the pacer answers, and why.

mod desk;

use desk::{Desk, TARGET, limits, refusal};
use everturn_kernel::Millis;
use everturn_pacing::{Admission, Because, Limits, Priority, Size, Ticket, What};
use everturn_wire::{Category, Failure};

#[test]
fn a_lone_turn_follows_its_schedule_alone() {
    let mut desk = Desk::new();
    for wait_ms in [40, 80, 160, 40, 7] {
        let ticket = desk.goes("a");
        desk.now += 10;
        desk.refused(ticket, &refusal(None));
        assert_eq!(desk.let_go(), Vec::<String>::new(), "not before its schedule");
        desk.now += wait_ms;
    }
    let ticket = desk.goes("a");
    desk.answers(ticket);
    for _ in 0..100 {
        let ticket = desk.goes("a");
        desk.answers(ticket);
        desk.now += 5;
    }
}

#[test]
fn a_provider_that_accepts_at_once_is_not_slowed() {
    let mut desk = Desk::new();
    for _ in 0..1_000 {
        let tickets: Vec<_> = (0..8).map(|n| desk.goes(&format!("{n}"))).collect();
        tickets.into_iter().for_each(|ticket| desk.answers(ticket));
    }
}

#[test]
fn many_calls_at_once_wait_for_the_first_answers_or_a_moment() {
    let mut desk = Desk::new();
    let tickets: Vec<_> = (0..9).map(|n| desk.goes(&format!("{n}"))).collect();
    assert_eq!(desk.waits("a"), (125, Because::Ramp));
    desk.heard(tickets[0], &Limits::default());
    assert_eq!(desk.let_go(), ["a"]);
    assert_eq!(desk.waits("b"), (125, Because::Ramp));
    desk.now += 125;
    assert_eq!(desk.let_go(), ["b"]);
}

#[test]
fn a_hint_holds_everybody() {
    let mut desk = Desk::new();
    let ticket = desk.goes("a");
    desk.refused(ticket, &refusal(Some(9_000)));
    assert_eq!(desk.waits("b"), (9_000, Because::Hint));
    desk.now += 8_999;
    assert_eq!(desk.waits("a").1, Because::Hint);
    assert_eq!(desk.let_go(), Vec::<String>::new());
    desk.now += 1;
    assert_eq!(desk.let_go(), ["b"], "one finds out");
}

#[test]
fn a_hint_is_believed_before_a_reported_limit_once() {
    let mut desk = Desk::new();
    let empty = limits(What::Requests, 60, 0, 360_000);
    let ticket = desk.goes("a");
    desk.pacer.refused(TARGET, ticket, &refusal(Some(1_000)), &empty, Millis(desk.now));
    desk.now += 1_000;
    let ticket = desk.goes("a");
    desk.refused(ticket, &Failure::new(Category::ServerError, true, "HTTP 500"));
    let ticket = desk.goes("a");
    desk.pacer.refused(TARGET, ticket, &refusal(Some(1_000)), &empty, Millis(desk.now));
    desk.now += 1_000;
    let ticket = desk.goes("a");
    desk.refused(ticket, &Failure::new(Category::Overloaded, true, "HTTP 529"));
    desk.now += 40;
    let ticket = desk.goes("a");
    desk.answers(ticket);
    let ticket = desk.goes("a");
    desk.pacer.refused(TARGET, ticket, &refusal(Some(1_000)), &empty, Millis(desk.now));
    desk.now += 1_000;
    let ticket = desk.goes("a");
    desk.pacer.refused(TARGET, ticket, &refusal(Some(1_000)), &empty, Millis(desk.now));
    desk.now += 1_000;
    assert_eq!(desk.waits("a"), (359_000, Because::Requests));
}

#[test]
fn others_wait_at_most_half_a_minute_between_probes() {
    let mut desk = Desk::new();
    let mut ticket = desk.goes("a");
    let mut longest = 0;
    for round in 0..12 {
        desk.refused(ticket, &refusal(None));
        let other = format!("other {round}");
        let (wait_ms, because) = desk.waits(&other);
        assert_eq!(because, Because::Refused);
        longest = wait_ms.max(longest);
        desk.now += wait_ms;
        ticket = desk.goes(&other);
        assert_eq!(desk.waits("b").1, Because::Probe, "one at a time");
        desk.pacer.forget(TARGET, &"b".into(), Millis(desk.now));
        desk.now += 100;
    }
    assert_eq!(longest, 30_000);
}

#[test]
fn a_probe_that_is_never_answered_does_not_hold_others_for_ever() {
    let mut desk = Desk::new();
    let ticket = desk.goes("a");
    desk.refused(ticket, &refusal(None));
    desk.now += 1_000;
    let probe = desk.goes("b");
    assert_eq!(desk.waits("c").1, Because::Probe);
    desk.pacer.ended(TARGET, probe, None);
    assert_eq!(desk.let_go(), ["c"]);
    // Nor does a turn that was let go and never came.
    desk.now += 5_001;
    desk.goes("d");
}

/// The answer of a model that thinks may begin minutes after it was accepted.
#[test]
fn a_probe_whose_answer_takes_long_holds_others_for_half_a_minute() {
    let mut desk = Desk::new();
    let ticket = desk.goes("a");
    desk.refused(ticket, &refusal(None));
    desk.now += 1_000;
    let probe = desk.goes("a");
    assert!(desk.pacer.is_probed(TARGET, Millis(desk.now)));
    for turn in ["b", "c"] {
        assert_eq!(desk.waits(turn).1, Because::Probe);
    }
    assert_eq!(desk.pacer.next_at(Millis(desk.now)), Some(Millis(desk.now + 30_000)));
    desk.now += 30_000;
    assert!(!desk.pacer.is_probed(TARGET, Millis(desk.now)), "other nodes need not wait, either");
    assert_eq!(desk.let_go(), ["b"]);
    let second = desk.goes("b");
    assert_eq!((desk.let_go(), desk.waits("c").1), (Vec::new(), Because::Probe), "one at a time");
    // The first is still heard.
    desk.heard(probe, &Limits::default());
    assert_eq!(desk.let_go(), ["c"]);
    desk.answers(second);
}

#[test]
fn refused_turns_go_in_order_once_another_is_answered() {
    let mut desk = Desk::new();
    let refused = ["a", "b", "c"];
    for ticket in refused.map(|turn| desk.goes(turn)) {
        desk.refused(ticket, &refusal(Some(1_000)));
    }
    for turn in refused {
        desk.now += 1;
        assert_eq!(desk.waits(turn).1, Because::Hint);
    }
    desk.now += 1_000;
    assert_eq!(desk.let_go(), ["a"]);
    let probe = desk.goes("a");
    assert_eq!(desk.let_go(), Vec::<String>::new());
    desk.heard(probe, &Limits::default());
    let mut gone = desk.let_go();
    while gone.len() < 2 {
        desk.now = desk.pacer.next_at(Millis(desk.now)).expect("somebody waits").0;
        gone.extend(desk.let_go());
    }
    assert_eq!(gone, ["b", "c"]);
}

#[test]
fn a_reported_limit_is_used_up_and_never_exceeded() {
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Requests, 10, 3, 20_000));
    (0..3).for_each(|n| _ = desk.goes(&format!("{n}")));
    assert_eq!(desk.waits("x"), (20_000, Because::Requests));
    desk.now += 20_000;
    assert_eq!(desk.let_go(), ["x"]);
    (0..9).for_each(|n| _ = desk.goes(&format!("next {n}")));
    assert_eq!(desk.waits("y").1, Because::Requests);
}

#[test]
fn an_overtaken_report_says_nothing() {
    let mut desk = Desk::new();
    let (first, second) = (desk.goes("first"), desk.goes("second"));
    desk.heard(second, &limits(What::Requests, 10, 1, 20_000));
    desk.heard(first, &limits(What::Requests, 10, 2, 20_000));
    desk.goes("a");
    assert_eq!(desk.waits("b").1, Because::Requests);
}

#[test]
fn a_call_that_does_not_fit_waits_for_its_window_and_smaller_ones_use_the_rest() {
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Tokens, 10_000, 2_000, 30_000));
    let huge =
        desk.ask_as("huge", Priority::Interactive, Size { input: 9_000, cached: 0, output: 0, money: 0 });
    let Admission::Wait(wait) = huge else { panic!("{huge:?}") };
    assert_eq!((wait.until.0 - desk.now, wait.because), (30_000, Because::Tokens));
    let small =
        desk.ask_as("small", Priority::Interactive, Size { input: 500, cached: 0, output: 500, money: 0 });
    assert!(matches!(small, Admission::Go(_)), "{small:?}");
    desk.now += 30_000;
    assert_eq!(desk.let_go(), ["huge"]);
}

#[test]
fn a_call_larger_than_the_limit_is_left_to_the_provider() {
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Tokens, 10_000, 8_900, 30_000));
    let huge = Size { input: 90_000, ..Size::default() };
    let Admission::Wait(wait) = desk.ask_as("huge", Priority::Interactive, huge) else { panic!("it waits") };
    assert_eq!(wait.until.0 - desk.now, 30_000);
    desk.now += 30_000;
    assert_eq!(desk.let_go(), ["huge"], "when the window is whole");
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Tokens, 10_000, 9_000, 30_000));
    let goes = desk.ask_as("huge", Priority::Interactive, huge);
    assert!(matches!(goes, Admission::Go(_)), "nearly whole is enough");
}

#[test]
fn limits_on_input_do_not_count_what_comes_from_a_cache() {
    for (what, goes) in [(What::InputTokens, true), (What::Tokens, false)] {
        let mut desk = Desk::new();
        let first = desk.goes("first");
        desk.heard(first, &limits(what, 10_000, 2_000, 30_000));
        let cached = Size { input: 9_000, cached: 8_000, ..Size::default() };
        let asked = desk.ask_as("cached", Priority::Interactive, cached);
        assert_eq!(matches!(asked, Admission::Go(_)), goes, "{what:?}");
    }
}

#[test]
fn a_limit_on_calls_at_once_is_learnt() {
    let mut desk = Desk::new();
    let running: Vec<Ticket> = (0..4).map(|n| desk.goes(&format!("{n}"))).collect();
    running.iter().for_each(|ticket| desk.heard(*ticket, &Limits::default()));
    let fifth = desk.goes("fifth");
    desk.refused(fifth, &refusal(None));
    assert_eq!(desk.waits("sixth").1, Because::Concurrency);
    desk.pacer.ended(TARGET, running[0], None);
    assert_eq!(desk.let_go(), ["sixth"], "the refused turn follows its schedule");
}

#[test]
fn interactive_calls_go_first_and_one_in_eight_is_a_background_call() {
    let mut desk = Desk::new();
    let ticket = desk.goes("probe");
    desk.refused(ticket, &refusal(Some(1_000)));
    for n in 0..20 {
        desk.ask_as(&format!("b{n}"), Priority::Background, Size::default());
        desk.ask_as(&format!("i{n}"), Priority::Interactive, Size::default());
        desk.now += 1;
    }
    let mut gone: Vec<String> = Vec::new();
    while gone.len() < 40 {
        desk.now = desk.pacer.next_at(Millis(desk.now)).expect("somebody waits").0;
        for turn in desk.let_go() {
            let Admission::Go(ticket) = desk.ask(&turn) else { panic!("{turn} was let go") };
            desk.answers(ticket);
            gone.push(turn);
        }
    }
    let (first, second) = (&gone[..8], &gone[8..16]);
    assert_eq!(first, ["i0", "i1", "i2", "i3", "i4", "i5", "i6", "b0"]);
    assert_eq!(second, ["i7", "i8", "i9", "i10", "i11", "i12", "i13", "b1"]);
}

#[test]
fn background_calls_leave_something_for_interactive_ones() {
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Requests, 100, 99, 60_000));
    let mut made = 0;
    while let Admission::Go(_) = desk.ask_as(&format!("b{made}"), Priority::Background, Size::default()) {
        made += 1;
    }
    assert_eq!(made, 89, "a tenth is kept");
    desk.goes("person");
    desk.now += 54_000;
    assert!(!desk.let_go().is_empty(), "what nobody used is given away as the window ends");
}

#[test]
fn a_call_that_was_let_go_counts_when_it_is_made() {
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Requests, 4, 0, 20_000));
    for turn in ["a", "b", "c", "d", "e", "f"] {
        desk.waits(turn);
    }
    desk.now += 20_000;
    assert_eq!(desk.let_go(), ["a", "b", "c", "d"]);
    // They come in another order, and the report of the first one does not count the others.
    let last = desk.goes("d");
    desk.heard(last, &limits(What::Requests, 4, 3, 60_000));
    assert_eq!(desk.let_go(), Vec::<String>::new());
    (["c", "b", "a"]).iter().for_each(|turn| _ = desk.goes(turn));
    assert_eq!(desk.waits("e").1, Because::Requests);
}

#[test]
fn a_long_line_costs_little() {
    let mut desk = Desk::new();
    let first = desk.goes("first");
    desk.heard(first, &limits(What::Requests, 100, 0, 60_000));
    let begun = std::time::Instant::now();
    for turn in 0..10_000 {
        desk.ask_as(&format!("t{turn}"), Priority::Background, Size::default());
    }
    for _ in 0..10_000 {
        assert_eq!(desk.let_go(), Vec::<String>::new());
        desk.pacer.next_at(Millis(desk.now));
    }
    println!("10,000 turns in line and as many looks: {:?}", begun.elapsed());
}
