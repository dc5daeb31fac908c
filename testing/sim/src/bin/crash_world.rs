//! Runs many seeded crash worlds, or replays one with its trace.
#![allow(clippy::print_stdout, reason = "it is for printing")]

use std::{
    collections::BTreeMap,
    process::ExitCode,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use clap::Parser;
use everturn_sim::crash::{self, PHASES, Tally, Verdict, nodes};

/// Crashes the orchestrator in seeded worlds, and checks that no turn is lost or duplicated.
#[derive(Parser)]
struct Arguments {
    /// Number of turns to seal, over as many worlds as needed.
    #[arg(long, default_value_t = 10_000)]
    turns: u64,
    /// The seed of the first world; the others follow
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Run only the world with this seed, and print its trace
    #[arg(long)]
    seed: Option<u64>,
    /// Number of nodes that share the journal; 0 = one process after another
    #[arg(long, default_value_t = 0)]
    nodes: usize,
    /// Let watchers go back to earlier cursors; needs several nodes
    #[arg(long, requires = "nodes")]
    restless: bool,
    /// Run the other worlds, too, when one fails
    #[arg(long)]
    keep_going: bool,
}

impl Arguments {
    fn run(&self, seed: u64, traced: bool) -> Verdict {
        match self.nodes {
            0 => crash::run(seed, traced),
            nodes if self.restless => nodes::run_restless(seed, nodes, traced),
            nodes => nodes::run(seed, nodes, traced),
        }
    }
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match arguments.seed {
        Some(seed) => replay(&arguments, seed),
        None => all(&arguments),
    }
}

fn replay(arguments: &Arguments, seed: u64) -> ExitCode {
    let Verdict { turns, lives, wrong, trace, .. } = arguments.run(seed, true);
    trace.iter().for_each(|line| println!("{line}"));
    println!("seed {seed}: {turns} turns in {lives} processes, {} wrong", wrong.len());
    wrong.iter().for_each(|what| println!("{what}"));
    if wrong.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn all(arguments: &Arguments) -> ExitCode {
    let Arguments { from, turns, nodes, keep_going, .. } = *arguments;
    let began = Instant::now();
    let (next, sealed, lives) = (AtomicU64::new(from), AtomicU64::new(0), AtomicU64::new(0));
    let (failed, tally) = (AtomicBool::new(false), Mutex::new(Tally::default()));
    let failures = Mutex::new(BTreeMap::<u64, Vec<String>>::new());
    let work = || {
        while sealed.load(Ordering::Relaxed) < turns && !failed.load(Ordering::Relaxed) {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            let verdict = arguments.run(seed, false);
            sealed.fetch_add(verdict.turns as u64, Ordering::Relaxed);
            lives.fetch_add(verdict.lives as u64, Ordering::Relaxed);
            tally.lock().unwrap_or_else(PoisonError::into_inner).add(&verdict.tally);
            if !verdict.wrong.is_empty() {
                failures.lock().unwrap_or_else(PoisonError::into_inner).insert(seed, verdict.wrong);
                failed.store(!keep_going, Ordering::Relaxed);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    let worlds = next.into_inner() - from;
    println!(
        "{} turns, {worlds} worlds, {} processes in {:.1?}",
        sealed.into_inner(),
        lives.into_inner(),
        began.elapsed()
    );
    let tally = tally.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (what, times) in tally.iter() {
        println!("{times:>8} {what}");
    }
    println!("\nWhat happened to turns in each phase:");
    PHASES.iter().for_each(|phase| print!("{phase:>16}"));
    println!();
    for (what, times) in tally.by_phase() {
        times.iter().for_each(|times| print!("{times:>16}"));
        println!("  {what}");
    }
    let failures = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
    for (seed, wrong) in &failures {
        println!("seed {seed} fails after {} worlds:", seed - from + 1);
        wrong.iter().for_each(|what| println!("  {what}"));
        println!(
            "again: cargo run --release -p everturn-sim --bin crash-world -- --nodes {nodes}{} --seed {seed}",
            if arguments.restless { " --restless" } else { "" }
        );
    }
    if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
