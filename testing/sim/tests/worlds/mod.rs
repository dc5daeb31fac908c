//! Runs seeded worlds on all cores.

use std::{
    sync::{
        Mutex,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use everturn_sim::crash::{Tally, Verdict};

/// Number of seeds whose traces are compared.
const COMPARED: u64 = 12;

/// Runs this many worlds, in which nothing may go wrong and each of `cases` must happen. `mode`: the option of `crash-world`
/// that runs such a world.
pub(crate) fn all_go_well(worlds: u64, mode: &str, run: impl Fn(u64) -> Verdict + Sync, cases: &[&str]) {
    let (next, tally) = (AtomicU64::new(0), Mutex::new(Tally::default()));
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= worlds {
                return;
            }
            let verdict = run(seed);
            assert!(
                verdict.wrong.is_empty(),
                "{:#?}\nagain: cargo run --release -p everturn-sim --bin crash-world --{mode} --seed {seed}",
                verdict.wrong
            );
            tally.lock().expect("no world panicked").add(&verdict.tally);
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let tally = tally.into_inner().expect("no world panicked");
    for what in cases {
        assert!(tally.of(what) > 0, "{what}: never in {worlds} worlds");
    }
}

/// Checks that the same seed gives the same trace.
pub(crate) fn are_replayed(trace: impl Fn(u64) -> Vec<String>) {
    for seed in 0..COMPARED {
        let [one, other] = [(), ()].map(|()| trace(seed));
        assert!(one.len() > 10, "{one:?}");
        let differs = one.iter().zip(&other).find(|(one, other)| one != other);
        assert!(one == other, "seed {seed}: {differs:#?}");
    }
}
