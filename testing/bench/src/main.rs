//! Benchmarks that print ratios: the cost of Everturn as a multiple of a bare client in the same run.
//!
//! Absolute times depend on the machine; the ratios should not. Each row runs in its own process, so that its CPU time
//! can be measured. The provider and the WebSocket clients are further processes.
#![allow(clippy::print_stdout, reason = "printing is what this program is for")]

mod bare;
mod callers;
mod child;
mod durability;
mod kernel;
mod latency;
mod memory;
mod provider;
mod relay;
mod shared;
mod stream;
mod table;
mod turns;

use std::{fmt::Write as _, process::ExitCode};

use anyhow::{Context, Result, bail};

use child::Child;
use memory::{Parked, Refused};
use table::Table;

/// Number of deltas of one saturated stream, and number of runs per row; the best run counts.
const DELTAS: u64 = 200_000;
const RUNS: usize = 3;
/// Number of runs with many turns, by the bare client and by Everturn; the median counts.
pub(crate) const PAIRS: usize = 5;
/// Number of additional subscribers, for the cost of each.
const FURTHER: usize = 8;
/// Number of parked turns in the usual report.
const PARKED: usize = 100_000;
/// Number of turns in the usual report that wait for approval.
const ASKING: usize = 10_000;

/// What a user may ask for; the other arguments are those of child processes.
const USAGE: &str = "run without arguments for the whole report, or with one of: turns, relay, callers, million, durability, kernel";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("everturn-bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[&str]) -> Result<()> {
    match args {
        [] => report(),
        ["provider"] => provider::serve(),
        ["bare", base] => stream::bare(base),
        ["adapter", api, base] => stream::adapter(api, base),
        ["in-process", base, further] => stream::in_process(base, further.parse()?),
        ["websocket", base, clients] => stream::websocket(base, clients.parse()?),
        ["reader", url, message] => stream::reader(url, message),
        ["turns", client, load, base] => turns::measure(client, load, base),
        ["turns"] => many_turns(),
        ["posted", base, path] => stream::post::served(base, path),
        ["post", host, path] => stream::post::client(host, path),
        ["latency", base] => latency::measure(base),
        ["memory"] => memory::measure(Refused::First),
        ["memory", "refused"] => memory::measure(Refused::All),
        ["parked", turns] => memory::parked(turns.parse()?, Parked::Clock),
        ["asking", turns] => memory::parked(turns.parse()?, Parked::Person),
        ["durability"] => durability::measure(),
        ["million"] => million(),
        ["relay"] => relay::report(),
        ["callers"] => shared::report(),
        ["between", kind, upstream] => relay::serve(kind, upstream),
        ["call", load, host] => relay::call(load, host),
        ["wait", host, calls] => relay::wait(host, calls.parse()?),
        ["kernel"] => kernel::measure(),
        other => bail!("unknown arguments {other:?}: {USAGE}"),
    }
}

fn report() -> Result<()> {
    let mut provider = Child::start(&["provider"])?;
    let base = provider.line().context("the provider did not say where it is")?;
    let measure = |args: &[&str]| best(args);

    let mut table = Table::new();
    let bare = measure(&["bare", &base])?;
    let one = measure(&["in-process", &base, "0"])?;
    let many = measure(&["in-process", &base, &FURTHER.to_string()])?;
    table.ratio("provider bytes to one subscriber in process, CPU per delta", one, bare, 1.5);
    table.ratio("each further subscriber, CPU per delta", (many - one) / FURTHER as f64, bare, 0.3);
    let ws = measure(&["websocket", &base, "1"])?;
    let ws_many = measure(&["websocket", &base, &(1 + FURTHER).to_string()])?;
    table.ratio("provider bytes to one WebSocket client, CPU per delta", ws, bare, 3.0);
    table.ratio("each further WebSocket client, CPU per delta", (ws_many - ws) / FURTHER as f64, bare, 0.3);
    let native = measure(&["posted", &base, "/chat"])?;
    let openai = measure(&["posted", &base, "/v1/chat/completions"])?;
    table.ratio(
        "a stream to an OpenAI client, as a multiple of POST /chat, CPU per delta",
        openai,
        native,
        1.3,
    );
    for (name, path) in [("useChat", "/api/chat"), ("AG-UI", "/ag-ui")] {
        let cost = measure(&["posted", &base, path])?;
        let row = format!("a stream to {name}, as a multiple of POST /chat, CPU per delta");
        table.ratio(&row, cost, native, 1.3);
    }
    let chat = measure(&["adapter", "chat", &base])?;
    table.ratio("the adapter of Chat Completions alone, CPU per delta", chat, bare, 2.0);
    for (api, name) in [("responses", "Responses"), ("messages", "Messages"), ("gemini", "Gemini")] {
        let cost = measure(&["adapter", api, &base])?;
        table.ratio(
            &format!("the adapter of {name}, as a multiple of that of Chat Completions"),
            cost,
            chat,
            1.5,
        );
    }

    let many = turns(&base, &mut table)?;
    let latency = figures(&Child::run(&["latency", &base])?)?;
    let [bare_us, ours_us, stop_ms, bare_p99, socket_us, socket_p99, post_us, post_p99] = latency[..] else {
        bail!("not the figures of latency: {latency:?}");
    };
    table.figure("time to first event, added to the bare client's, p50", ours_us - bare_us, "us", 50.0);
    for (kind, p50, p99) in [("WebSocket", socket_us, socket_p99), ("POST", post_us, post_p99)] {
        let row =
            |part| format!("a delta alone over a {kind} that is kept, added to the bare client's, {part}");
        table.figure(&row("p50"), p50 - bare_us, "us", 2_000.0);
        table.figure(&row("p99"), p99 - bare_p99, "us", 10_000.0);
    }
    table.figure("stop to the turn's last event, p99", stop_ms, "ms", 100.0);
    provider.stop();
    let held = single(&["memory"])?;
    table.figure("memory of each of 10000 turns that wait 50 s, its record included", held, "bytes", 3072.0);
    let refused = single(&["memory", "refused"])?;
    table.figure("the same, all refused at once", refused, "bytes", 3072.0);
    let parked = parked(PARKED, &mut table)?;
    let asking = asking(&mut table)?;
    let durable = durability(&mut table)?;
    table.figure("kernel: one delta through handle", single(&["kernel"])?, "ns", 25.0);
    println!("bare client: {bare:.0} ns of CPU per delta, {bare_us:.0} us to the first one (p50)");
    println!("{many}\n{parked}\n{asking}\n{durable}\n{table}");
    Ok(())
}

/// Measures only many turns.
fn many_turns() -> Result<()> {
    let mut provider = Child::start(&["provider"])?;
    let base = provider.line().context("the provider did not say where it is")?;
    let mut table = Table::new();
    let bare = turns(&base, &mut table)?;
    println!("{bare}\n{table}");
    Ok(())
}

/// Adds the rows of many turns. Returns the cost of the bare client.
fn turns(base: &str, table: &mut Table) -> Result<String> {
    let rows = [
        ("burst", 0, 2.0, "64 turns at once, 200 deltas each, an answer in one write, CPU per delta"),
        ("paced", 0, 1.3, "512 turns at once, a delta every 20 ms, CPU per delta"),
        ("short", 1, 2.5, "64 turns at once, 20 deltas each, CPU per turn"),
        (
            "limited",
            1,
            2.5,
            "the same after two 429s that ask for no wait, each on a target of its own, CPU per turn",
        ),
    ];
    let mut said = String::from("bare client:");
    for (load, figure, limit, what) in rows {
        let mut both = [Vec::new(), Vec::new()];
        for _ in 0..PAIRS {
            // Alternates, so that both see the same conditions.
            for (of, client) in both.iter_mut().zip(["bare", "engine"]) {
                of.push(figures(&Child::run(&["turns", client, load, base])?)?[figure]);
            }
        }
        let [bare, engine] = both.map(median);
        table.ratio(what, engine, bare, limit);
        let per = ["delta", "turn"][figure];
        write!(said, " {load} {:.1} us a {per};", bare / 1e3)?;
    }
    Ok(said)
}

/// Returns the median.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Adds the rows that take minutes and gigabytes.
fn million() -> Result<()> {
    let mut table = Table::new();
    let parked = parked(1_000_000, &mut table)?;
    println!("{parked}\n{table}");
    Ok(())
}

/// Adds the rows of parked turns. Returns remarks.
fn parked(turns: usize, table: &mut Table) -> Result<String> {
    let figures = figures(&Child::run(&["parked", &turns.to_string()])?)?;
    let (held, file, per_second, restart) = (figures[0], figures[1], figures[2], figures[3]);
    table.figure(&format!("memory of each of {turns} parked turns, in the process"), held, "bytes", 300.0);
    let known = figures[4];
    // 0.1 s for 100,000, and 1 s for a million.
    let limit = 100.0 * (turns as f64 / PARKED as f64);
    table.figure(&format!("restart with {turns} parked turns to all waits known"), restart, "ms", limit);
    table.figure(&format!("memory for each of {turns} waits after the restart"), known, "bytes", 300.0);
    Ok(format!(
        "{turns} parked turns: {file:.0} bytes each in the file; {per_second:.0} a second begun and parked (two \
         durable commits each)"
    ))
}

/// Adds the rows of turns that wait for a person's approval. Returns remarks.
fn asking(table: &mut Table) -> Result<String> {
    let figures = figures(&Child::run(&["asking", &ASKING.to_string()])?)?;
    let (held, file, per_second, restart) = (figures[0], figures[1], figures[2], figures[3]);
    table.figure(&format!("memory of each of {ASKING} turns that wait for approval"), held, "bytes", 300.0);
    table.figure(&format!("restart with {ASKING} turns that wait for approval"), restart, "ms", 200.0);
    Ok(format!(
        "{ASKING} turns that wait for approval: {file:.0} bytes each in the file; {per_second:.0} a second begun and \
         parked"
    ))
}

/// Adds the row of what durability costs. Returns remarks.
fn durability(table: &mut Table) -> Result<String> {
    let figures = figures(&Child::run(&["durability"])?)?;
    let [flush, memory, durable, in_memory, together, alone, content, log, written, kept] = figures[..]
    else {
        bail!("not the figures of durability: {figures:?}");
    };
    let row = "time to first event, added by the file, minus one flush, p50";
    table.figure(row, durable - memory - flush, "us", 60.0);
    table.ratio("a turn of 200 deltas, bytes written, in bytes of its content", written, content, 4.0);
    Ok(format!(
        "a flush: {flush:.0} us; first event: {memory:.0} us in memory, {durable:.0} us durable (p50)\n\
         turns a second: {in_memory:.0} in memory, {together:.0} durable, {alone:.0} durable one after the other\n\
         a turn of 200 deltas: {content:.0} bytes of events and chunks, {written:.0} written ({:.1} times; \
         {log:.0} of them before the log is copied), {kept:.0} kept ({:.1} times)",
        written / content,
        kept / content
    ))
}

/// Parses the numbers that a child printed.
fn figures(line: &str) -> Result<Vec<f64>> {
    Ok(line.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
}

/// Returns the only number that a child printed.
fn single(args: &[&str]) -> Result<f64> {
    Ok(Child::run(args)?.trim().parse()?)
}

/// Returns the lowest CPU time per delta of a few runs, because disturbances only add.
fn best(args: &[&str]) -> Result<f64> {
    let mut least = f64::INFINITY;
    for _ in 0..RUNS {
        least = least.min(single(args)?);
    }
    Ok(least)
}
