//! Runs some of the worlds of `crash-world`, which can run any number.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use everturn_sim::crash::{self, Tally};

const WORLDS: u64 = 120;

#[test]
fn no_crash_loses_or_doubles_anything() {
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= WORLDS {
                return;
            }
            let verdict = crash::run(seed, false);
            assert!(
                verdict.wrong.is_empty(),
                "{:#?}\nagain: cargo run --release -p everturn-sim --bin crash-world -- --seed {seed}",
                verdict.wrong
            );
            tally.lock().unwrap().add(&verdict.tally);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let tally = tally.into_inner().unwrap();
    for what in [
        "a call ends the turn",
        "a call is allowed",
        "a call is denied",
        "a call is interrupted",
        "a crash after an append",
        "a crash at a time",
        "a crash before an append",
        "a crash in a tool",
        "a crash in mid-stream",
        "a failure with a hint",
        "a history is summarized",
        "a history is too long",
        "a message is queued",
        "a running conversation is closed",
        "a shutdown",
        "a step is rewound",
        "a tool runs again",
        "a turn is stopped",
        "a wait ends",
        "a wait is skipped",
        "a world is compared with a calm one",
        "the journal fails",
        "the clock is set back while a process runs",
        "the machine is suspended",
    ] {
        assert!(tally.of(what) > 0, "{what}: never in {WORLDS} worlds");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_to_the_letter() {
    for seed in 0..12 {
        let [one, other] = [(), ()].map(|()| crash::run(seed, true).trace);
        assert!(one.len() > 10, "{one:?}");
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(one == other, "seed {seed}: {differs:#?}");
    }
}
