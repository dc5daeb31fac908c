//! Limits that nobody reports: what moves them, and what they hold back. And what the real size of a call changes.

mod desk;

use desk::{Desk, TARGET, limits, refusal};
use everturn_kernel::Millis;
use everturn_pacing::{Admission, Because, Limits, Priority, Size, Ticket, What};
use everturn_wire::{Category, Failure};

impl Desk {
    /// Makes calls at once that are accepted, and run.
    fn run(&mut self, name: &str, calls: usize) -> Vec<Ticket> {
        let accepted = |n: usize| {
            let ticket = self.goes(&format!("{name} {n}"));
            self.heard(ticket, &Limits::default());
            ticket
        };
        (0..calls).map(accepted).collect()
    }

    fn end(&mut self, tickets: impl IntoIterator<Item = Ticket>) {
        tickets.into_iter().for_each(|ticket| self.pacer.ended(TARGET, ticket, None));
    }

    /// One call is refused while four run, so four at once are allowed. None runs any more.
    fn allows_four() -> Self {
        let mut desk = Self::new();
        let running = desk.run("first", 4);
        let fifth = desk.goes("fifth");
        desk.refused(fifth, &refusal(None));
        assert_eq!(desk.waits("sixth").1, Because::Concurrency);
        desk.forget("sixth");
        desk.end(running);
        desk
    }

    fn forget(&mut self, turn: &str) {
        self.pacer.forget(TARGET, &turn.into(), Millis(self.now));
    }

    /// Asserts that only so many calls may run at once.
    #[track_caller]
    fn allows(&mut self, calls: usize) {
        let running = self.run("allowed", calls);
        assert_eq!(self.waits("one more").1, Because::Concurrency);
        self.forget("one more");
        self.end(running);
    }
}

#[test]
fn after_a_refusal_acceptance_does_not_speed_up_the_ramp() {
    let mut desk = Desk::new();
    let ticket = desk.goes("a");
    desk.refused(ticket, &refusal(Some(1_000)));
    desk.now += 1_000;
    let probe = desk.goes("a");
    desk.answers(probe);
    desk.run("first", 9);
    assert_eq!(desk.waits("b"), (125, Because::Ramp));
    assert_eq!(desk.let_go(), [""; 0], "nine were accepted, but one was refused before");
    desk.now += 125;
    assert_eq!(desk.let_go(), ["b"]);
}

#[test]
fn an_overload_leaves_nine_tenths_of_the_calls_that_ran() {
    let mut desk = Desk::new();
    let mut running = desk.run("first", 20);
    let ticket = desk.goes("too many");
    desk.refused(ticket, &Failure::new(Category::Overloaded, true, "HTTP 529"));
    assert_eq!(desk.waits("a").1, Because::Concurrency);
    desk.end(running.drain(..2));
    assert_eq!(desk.let_go(), [""; 0], "eighteen run");
    desk.end(running.drain(..1));
    assert_eq!(desk.let_go(), ["a"]);
    let ticket = desk.goes("a");
    desk.end(running.into_iter().chain([ticket]));
    // A limit that few calls do not touch is not raised by them.
    for n in 0..200 {
        let ticket = desk.run(&format!("later {n}"), 1);
        desk.end(ticket);
    }
    desk.allows(18);
}

#[test]
fn a_call_that_is_refused_alone_after_an_overload_is_not_refused_for_calls_at_once() {
    let mut desk = Desk::new();
    let running = desk.run("first", 20);
    let ticket = desk.goes("too many");
    desk.refused(ticket, &Failure::new(Category::Overloaded, true, "HTTP 529"));
    desk.end(running);
    desk.now += 120_000;
    let ticket = desk.goes("alone");
    desk.refused(ticket, &refusal(None));
    assert_eq!(desk.waits("b"), (1_000, Because::Refused));
}

#[test]
fn a_limit_on_calls_at_once_is_tried_again_after_four_rounds_that_used_it() {
    let mut desk = Desk::allows_four();
    (0..3).for_each(|_| desk.allows(4));
    // The fourth of the fourth round was accepted.
    desk.allows(5);
}

#[test]
fn calls_that_began_before_a_round_was_over_do_not_count_for_the_next() {
    let mut desk = Desk::allows_four();
    let early: Vec<Ticket> = (0..4).map(|n| desk.goes(&format!("early {n}"))).collect();
    // Each is heard of again and again.
    for _ in 0..50 {
        early.iter().for_each(|ticket| desk.heard(*ticket, &Limits::default()));
    }
    desk.end(early);
    (0..2).for_each(|_| desk.allows(4));
    desk.allows(5);
}

#[test]
fn a_limit_on_calls_at_once_is_forgotten_when_fewer_are_refused() {
    for running in [0, 2] {
        let mut desk = Desk::allows_four();
        let running = desk.run("running", running);
        // The rate does not explain it.
        desk.now += 120_000;
        let ticket = desk.goes("a");
        desk.refused(ticket, &refusal(None));
        assert_eq!(desk.waits("b"), (1_000, Because::Refused));
        desk.now += 1_000;
        let probe = desk.goes("b");
        desk.answers(probe);
        desk.end(running);
        desk.run("later", 9);
        assert_eq!(desk.waits("c").1, Because::Ramp);
    }
}

#[test]
fn the_real_size_of_a_call_counts_instead_of_the_estimate_until_a_report_counts_it() {
    let size = |input| Size { input, cached: 0, output: 0, money: 0 };
    for (used, is_reported, left) in [(3_000, false, 2_000), (200, false, 4_800), (3_000, true, 1_500)] {
        let mut desk = Desk::new();
        let first = desk.goes("first");
        desk.heard(first, &limits(What::Tokens, 10_000, 5_000, 30_000));
        let Admission::Go(ticket) = desk.ask_as("a", Priority::Interactive, size(1_000)) else {
            panic!("it waits")
        };
        if is_reported {
            desk.heard(ticket, &limits(What::Tokens, 10_000, 1_500, 30_000));
        }
        desk.pacer.ended(TARGET, ticket, Some(size(used)));
        let more = desk.ask_as("b", Priority::Interactive, size(left + 1));
        assert!(matches!(more, Admission::Wait(_)), "{used}: {more:?}");
        desk.forget("b");
        let rest = desk.ask_as("c", Priority::Interactive, size(left));
        let Admission::Go(ticket) = rest else { panic!("{used}: {rest:?}") };
        // A report of a later call counts all of them.
        desk.heard(ticket, &limits(What::Tokens, 10_000, 4_000, 30_000));
        let all = desk.ask_as("d", Priority::Interactive, size(4_000));
        assert!(matches!(all, Admission::Go(_)), "{used}: {all:?}");
    }
}
