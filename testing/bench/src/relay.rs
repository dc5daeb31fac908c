//! Calls that pass through, beside a bare reverse proxy: CPU, latency and memory of the process in between.

mod callers;
mod proxy;

use std::fmt::Write as _;

use anyhow::{Context, Result};

use crate::{child::Child, figures, median, table::Table};

/// Number of runs of each, interleaved; the median counts.
const PAIRS: usize = 5;

/// Callers and their calls.
#[derive(Clone, Copy)]
struct Load {
    /// The start of the provider's path, which tells it what to do.
    path: &'static str,
    callers: usize,
    /// Number of calls of each caller.
    calls: usize,
    /// Pause of a caller between two calls, in milliseconds.
    pause_ms: u64,
}

/// An event every 20 ms, like a real model: 100 events a call.
const PACED: Load = Load { path: "paced", callers: 256, calls: 1, pause_ms: 0 };
/// A single event, as fast as it goes.
const SHORT: Load = Load { path: "one", callers: 64, calls: 60, pause_ms: 0 };
/// The same with pauses, so that calls seldom wait for each other.
const CALM: Load = Load { path: "one", callers: 64, calls: 40, pause_ms: 100 };

/// Runs a process in between: `bare`, `everturn`, or `callers` for one that knows callers.
pub(crate) fn serve(kind: &str, upstream: &str) -> Result<()> {
    proxy::serve(kind, upstream)
}

/// Calls an address. Prints the number of bytes received, and p50 and p99 of a call in microseconds.
pub(crate) fn call(load: &str, host: &str) -> Result<()> {
    callers::run(of(load)?, host)
}

fn of(load: &str) -> Result<Load> {
    let load =
        [("paced", PACED), ("short", SHORT), ("calm", CALM)].into_iter().find(|(name, _)| *name == load);
    Ok(load.context("no such load")?.1)
}

/// Returns the CPU time that a process in between took for a load, in nanoseconds.
pub(crate) fn cpu(kind: &str, load: &str, base: &str) -> Result<f64> {
    Ok(run(kind, load, of(load)?, base)?.cpu_ns)
}

/// Makes calls that wait until the process is killed.
pub(crate) fn wait(host: &str, calls: usize) -> Result<()> {
    callers::wait(host, calls)
}

/// Prints the report.
pub(crate) fn report() -> Result<()> {
    let mut provider = Child::start(&["provider"])?;
    let base = provider.line().context("the provider did not say where it is")?;
    let (mut table, mut said) = (Table::new(), String::from("bare proxy:"));
    for (name, load, per, unit) in [
        ("paced", PACED, 100.0, "256 streams at once, an event every 20 ms, CPU per event"),
        ("short", SHORT, 1.0, "64 callers at once, calls of one event, CPU per call"),
    ] {
        let mut both = [Vec::new(), Vec::new()];
        for _ in 0..PAIRS {
            // Alternates, so that both see the same conditions.
            for (of, kind) in both.iter_mut().zip(["bare", "everturn"]) {
                of.push(run(kind, name, load, &base)?.cpu_ns / (load.callers * load.calls) as f64 / per);
            }
        }
        let [bare, ours] = both.map(median);
        table.ratio(unit, ours, bare, 1.5);
        write!(said, " {name} {:.1} us;", bare / 1e3)?;
    }
    let mut times = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..PAIRS {
        for (at, kind) in ["bare", "everturn"].into_iter().enumerate() {
            let Run { p50_us, p99_us, .. } = run(kind, "calm", CALM, &base)?;
            times[at].push(p50_us);
            times[2 + at].push(p99_us);
        }
    }
    let [bare_p50, p50, bare_p99, p99] = times.map(median);
    table.figure(
        "64 callers with pauses, added to a call by the bare proxy's, p50",
        p50 - bare_p50,
        "us",
        100.0,
    );
    table.figure("the same, p99", p99 - bare_p99, "us", 1_000.0);
    write!(said, " a call takes {bare_p50:.0} us (p50), {bare_p99:.0} us (p99)")?;
    let waiting = callers::waiting(&base)?;
    table.figure("memory of each of 900 waiting calls, besides its body of 64 KiB", waiting, "bytes", 8192.0);
    println!("{said}\n{table}");
    Ok(())
}

/// What one run took.
struct Run {
    /// CPU time of the process in between.
    cpu_ns: f64,
    p50_us: f64,
    p99_us: f64,
}

fn run(kind: &str, name: &str, load: Load, base: &str) -> Result<Run> {
    let mut between = Child::start(&["between", kind, &format!("{base}/{}", load.path)])?;
    let host = between.line().context("the process in between did not say where it is")?;
    // Connections are established, and caches filled.
    Child::run(&["call", name, &host])?;
    let before = between.cpu_ns()?;
    let told = figures(&Child::run(&["call", name, &host])?)?;
    let cpu_ns = between.cpu_ns()? - before;
    Ok(Run { cpu_ns, p50_us: told[1], p99_us: told[2] })
}
