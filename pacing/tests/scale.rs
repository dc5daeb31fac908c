//! Ten thousand calls against each kind of limit, with restarts and on three nodes. Prints how much of the limit was used:
//! `cargo test -p everturn-pacing --test scale -- --nocapture`.

mod world;

use everturn_pacing::{Size, Terms};
use world::{MINUTE, START, World};

const DAY: u64 = 24 * 60 * MINUTE;
const CALLS: usize = 10_000;
const TAKES_MS: u64 = 2_000;

/// Each kind that has a period: its name, its period, a limit of 500 or 2,000 average calls, and how much of it a call uses up.
type Case = (&'static str, u64, u64, fn(u64) -> Terms, fn(Size) -> u64);
const CASES: [Case; 4] = [
    (
        "requests a minute",
        MINUTE,
        500,
        |limit| Terms { requests_per_minute: Some(limit), ..Terms::default() },
        |_| 1,
    ),
    (
        "tokens a minute",
        MINUTE,
        250_000,
        |limit| Terms { tokens_per_minute: Some(limit), ..Terms::default() },
        |size| size.input + size.output,
    ),
    (
        "tokens a day",
        DAY,
        1_000_000,
        |limit| Terms { tokens_per_day: Some(limit), ..Terms::default() },
        |size| size.input + size.output,
    ),
    (
        "money a day",
        DAY,
        2_600_000,
        |limit| Terms { money_per_day: Some(limit), ..Terms::default() },
        |size| size.money,
    ),
];

/// How processes end: never, or after some time, with what they saved; and how many there are at once.
#[derive(Clone, Copy)]
enum Course {
    One,
    Restarts,
    Three,
}

impl Course {
    const ALL: [(&'static str, Self); 3] =
        [("one process", Self::One), ("with restarts", Self::Restarts), ("three nodes", Self::Three)];

    fn nodes(self) -> usize {
        if matches!(self, Self::Three) { 3 } else { 1 }
    }

    /// Plays until all calls have gone, some of them on each node. Restarts fall into a busy moment, and into a wait.
    fn play(self, terms: Terms, period: u64) -> World {
        let mut world = World::new(terms, self.nodes(), TAKES_MS);
        // They have been there for a while.
        world.play(START + 5_000);
        for node in 0..self.nodes() {
            world.want(node, CALLS / self.nodes() + node);
        }
        let mut until = START + 5_000;
        for n in 0.. {
            if world.began.len() >= CALLS {
                break;
            }
            assert!(n < 2_000, "{} calls", world.began.len());
            let begins = until / period * period;
            until = if until - begins < 1_000 { begins + 1_000 } else { begins + period + 1_700 };
            world.play(until);
            if matches!(self, Self::Restarts) {
                world.restart(0);
            }
        }
        world
    }
}

#[test]
fn limits_are_kept_and_used() {
    for (kind, period, limit, terms, amount) in CASES {
        for (name, course) in Course::ALL {
            let world = course.play(terms(limit), period);
            let used = world.used(period, limit, amount);
            // The first period had begun before.
            let used = &used[1..];
            let most = used.iter().copied().fold(0.0, f64::max);
            let least = used.iter().copied().fold(f64::MAX, f64::min);
            let (calls, periods) = (world.began.len(), used.len());
            println!(
                "{kind}, {name}: {calls} calls in {periods} periods, {least:.4} to {most:.4} of the limit"
            );
            assert!(calls >= CALLS && periods >= 3, "{calls} calls in {periods} periods");
            // Requests are exact in one process. Otherwise what is under way was estimated, or nodes know each other late.
            let allowed = match (kind, course) {
                ("requests a minute", Course::One | Course::Restarts) => 1.0,
                (_, Course::One | Course::Restarts) => 1.03,
                (_, Course::Three) => 1.1,
            };
            assert!(most <= allowed, "{kind}, {name}: {most} of the limit");
            assert!(least >= 0.97, "{kind}, {name}: {least} of the limit");
        }
    }
}

#[test]
fn calls_at_once_are_limited_and_used() {
    for (name, course) in Course::ALL {
        let terms = Terms { parallel: Some(50), ..Terms::default() };
        let world = course.play(terms, MINUTE);
        let (calls, most) = (world.began.len(), world.most_at_once);
        // Whole seconds in which calls could begin; restarts lose those that run.
        let first = world.began[0].0;
        let last = world.began[CALLS - 1].0;
        let ideal = (last - first) * 50 / TAKES_MS;
        let used = calls.min(CALLS) as f64 / ideal as f64;
        println!("calls at once, {name}: {calls} calls, at most {most} of 50, {used:.4} of what they allow");
        assert!(calls >= CALLS);
        assert!(most <= if matches!(course, Course::Three) { 55 } else { 50 }, "{most}");
        assert!(used >= 0.97, "{used}");
    }
}
