//! Runs some of the worlds of `crash-world --nodes 3`, which can run any number.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use everturn_sim::crash::{Tally, nodes};

const WORLDS: u64 = 100;

#[test]
fn no_fault_of_a_node_loses_or_doubles_anything() {
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= WORLDS {
                return;
            }
            let verdict = nodes::run(seed, 3, false);
            assert!(
                verdict.wrong.is_empty(),
                "{:#?}\nagain: cargo run --release -p everturn-sim --bin crash-world -- --nodes 3 --seed {seed}",
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
        "a call is allowed",
        "a call is cut off",
        "a call is denied",
        "a call is interrupted",
        "a call is saved",
        "a failure with a hint",
        "a message is queued",
        "a node is cut off",
        "a node is killed",
        "a node shuts down",
        "a step is rewound",
        "a tool runs",
        "a tool runs again",
        "a turn is stopped",
        "a wait ends",
        "a wait is given up",
        "a wait is skipped",
        "the answer to an append is lost",
    ] {
        assert!(tally.of(what) > 0, "{what}: never in {WORLDS} worlds");
    }
}

#[test]
fn the_same_seed_gives_the_same_trace_at_every_node() {
    for seed in 0..12 {
        let [one, other] = [(), ()].map(|()| nodes::run(seed, 3, true).trace);
        assert!(one.len() > 10, "{one:?}");
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(one == other, "seed {seed}: {differs:#?}");
    }
}
