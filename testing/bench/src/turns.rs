//! Many turns: CPU time per delta or per turn, compared with a bare client.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use cpu_time::ProcessTime;
use everturn_orchestrator::{Caller, Exponential, Orchestrator, StartTurn, View};
use tokio::task::JoinSet;

use crate::{
    bare::Bare,
    callers::{caller, limiting},
    stream::{adapter, block_on, read},
};

/// A load of many concurrent turns.
struct Load {
    /// The start of the path, which tells the provider what to do.
    path: &'static str,
    at_once: usize,
    /// Number of sequential turns of each.
    rounds: usize,
    /// Number of deltas of a turn.
    deltas: u64,
    /// Number of targets that the turns share.
    targets: usize,
}

/// Complete answers, each in one write.
const BURST: Load = Load { path: "burst", at_once: 64, rounds: 20, deltas: 200, targets: 1 };
/// A delta every 20 ms, like a real model.
const PACED: Load = Load { path: "paced", at_once: 512, rounds: 1, deltas: 100, targets: 1 };
/// Short answers.
const SHORT: Load = Load { path: "short", at_once: 64, rounds: 60, deltas: 20, targets: 1 };
/// Short answers to every third request only. The others are refused, without a wait. Each turn has a target of its own: one that
/// refuses many turns has a limit, for which they wait.
const LIMITED: Load = Load { path: "limited", at_once: 64, rounds: 30, deltas: 20, targets: 64 };

fn load(name: &str) -> Result<Load> {
    [BURST, PACED, SHORT, LIMITED]
        .into_iter()
        .find(|load| load.path == name)
        .with_context(|| format!("no load is called {name:?}"))
}

/// Returns how many deltas the provider sends for this path.
pub(crate) fn deltas(path: &str) -> Option<u64> {
    let name = path.split('/').nth(1)?;
    load(name).ok().map(|load| load.deltas)
}

/// Prints CPU nanoseconds per delta and per turn of one kind of client, and the number of events per Everturn turn.
pub(crate) fn measure(client: &str, name: &str, base: &str) -> Result<()> {
    let load = load(name)?;
    let base = format!("{base}/{}", load.path);
    let (cpu, events) = block_on(async {
        match client {
            "bare" => bare(&load, &base).await,
            "engine" => engine(&load, &base, false).await,
            "callers" => engine(&load, &base, true).await,
            other => bail!("no client is called {other:?}"),
        }
    })?;
    let turns = (load.at_once * load.rounds) as f64;
    let per_turn = cpu.as_nanos() as f64 / turns;
    println!("{} {per_turn} {:.1}", per_turn / load.deltas as f64, events as f64 / turns);
    Ok(())
}

async fn bare(load: &Load, base: &str) -> Result<(Duration, u64)> {
    let mut clients = Vec::new();
    for _ in 0..load.at_once {
        clients.push(Bare::connect(base).await?);
    }
    let (started, mut running) = (ProcessTime::now(), JoinSet::new());
    for (n, mut client) in clients.into_iter().enumerate() {
        let (rounds, wanted) = (load.rounds, load.deltas);
        running.spawn(async move {
            for round in 0..rounds {
                let mut deltas = 0;
                client.stream(&message(n, round), |_| deltas += 1).await?;
                ensure!(deltas == wanted, "only {deltas} of {wanted} deltas came");
            }
            Ok(())
        });
    }
    running.join_all().await.into_iter().collect::<Result<()>>()?;
    Ok((started.elapsed(), 0))
}

async fn engine(load: &Load, base: &str, knows_callers: bool) -> Result<(Duration, u64)> {
    let at_once = Exponential { base: Duration::ZERO, ..Exponential::default() };
    let mut builder = Orchestrator::builder().schedule(at_once);
    for n in 0..load.targets {
        builder = builder.model("bench", &format!("m{n}"), adapter::of("chat", base)?);
    }
    let orchestrator = if knows_callers { limiting(builder).await?.0 } else { builder.build() };
    let view = |n| match knows_callers {
        true => Ok(orchestrator.seen_by(&caller(n)?)),
        false => Ok(orchestrator.seen_by(&Caller::administrator())),
    };
    let views = (0..load.at_once).map(view).collect::<Result<Vec<_>>>()?;
    // Connections are established beforehand, like the bare client's.
    turns(&views, load, 1, usize::MAX / 2).await?;
    let started = ProcessTime::now();
    let events = turns(&views, load, load.rounds, 0).await?;
    Ok((started.elapsed(), events))
}

/// Runs turns, one at once in each view, each to its seal, with one in-process subscriber. Returns the number of events.
async fn turns(views: &[View], load: &Load, rounds: usize, first: usize) -> Result<u64> {
    let mut running = JoinSet::new();
    for (n, view) in views.iter().cloned().enumerate() {
        let model = format!("bench/m{}", n % load.targets);
        running.spawn(async move {
            let mut all = 0;
            for round in 0..rounds {
                let turn = view.start(StartTurn::new(message(n, first + round)).model(&model)).await?;
                let events = view.subscribe(&turn.conversation_id, Some(turn.from), false).await?;
                let (events, bytes) = read(events).await?;
                ensure!(events > 3 && bytes > 100, "only {events} events came");
                all += events;
            }
            Ok(all)
        });
    }
    running.join_all().await.into_iter().sum()
}

/// Returns a unique message, by which the provider recognizes a repeated request.
fn message(n: usize, round: usize) -> String {
    format!("{} {n} {round}", std::process::id())
}
