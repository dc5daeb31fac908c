//! Measures the cost of a diagnosis: nanoseconds per failure over the labelled corpus, and the most expensive failures.

#[path = "../tests/corpus/row.rs"]
#[allow(dead_code)]
mod row;

use std::error::Error;
use std::hint::black_box;
use std::io::{self, Write};
use std::time::{Duration, Instant};

/// The best of several rounds counts, because other work on the machine only adds time.
const ROUNDS: u32 = 10;
const CALLS: u32 = 20;

fn main() -> Result<(), Box<dyn Error>> {
    let lines = include_str!("../tests/corpus/errors.jsonl").lines();
    let rows = lines.map(row::Row::parse).collect::<Result<Vec<_>, _>>()?;
    let mut costs: Vec<_> = rows.iter().map(|row| (cost(row), row.id.as_str())).collect();
    costs.sort_unstable();
    let total: u128 = costs.iter().map(|(cost, _)| cost.as_nanos()).sum();
    let mut out = io::stdout().lock();
    writeln!(out, "{} failures, mean {} ns", costs.len(), total / costs.len().max(1) as u128)?;
    for (name, at) in
        [("median", costs.len() / 2), ("p99", costs.len() * 99 / 100), ("worst", costs.len() - 1)]
    {
        writeln!(out, "{name}: {} ns ({})", costs[at].0.as_nanos(), costs[at].1)?;
    }
    Ok(())
}

fn cost(row: &row::Row) -> Duration {
    let round = |_| {
        let start = Instant::now();
        for _ in 0..CALLS {
            black_box(row.diagnose());
        }
        start.elapsed() / CALLS
    };
    (0..ROUNDS).map(round).min().unwrap_or_default()
}
