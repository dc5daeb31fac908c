//! What a turn costs that waits in memory.

use std::{fs, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use everturn_kernel::{Provider, Request, StreamEvent};
use everturn_orchestrator::{Exponential, Orchestrator, StartTurn};
use everturn_wire::{Category, Failure};
use futures_util::{StreamExt, future, stream, stream::BoxStream};

const TURNS: usize = 20_000;

/// A provider that is always overloaded.
struct Overloaded;

impl Provider for Overloaded {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let failure = Failure::new(Category::Overloaded, true, "HTTP 529: overloaded");
        stream::once(future::ready(StreamEvent::Failed(failure))).boxed()
    }
}

/// Prints bytes per waiting turn: how much the process grew.
pub(crate) fn measure() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let hours = Duration::from_secs(3600);
        let schedule = Exponential { base: hours, max_delay: None, ..Exponential::default() };
        let orchestrator = Orchestrator::builder().model("b", "m", Arc::new(Overloaded)).schedule(schedule).build();
        // The first turns pay for what all share.
        wait(&orchestrator, 500).await?;
        let before = resident()?;
        wait(&orchestrator, TURNS).await?;
        println!("{}", resident()?.saturating_sub(before) / TURNS);
        Ok(())
    })
}

/// Starts turns and sees that each of them waits.
async fn wait(orchestrator: &Orchestrator, turns: usize) -> Result<()> {
    for _ in 0..turns {
        let start = StartTurn { text: "What is the answer?".to_owned(), ..StartTurn::default() };
        let started = orchestrator.start(start).await?;
        let mut events = orchestrator.subscribe(&started.conversation_id, Some(started.from), false).await?;
        while !events.next().await?.event().starts_with(br#"{"type":"provider-retry""#) {}
    }
    Ok(())
}

fn resident() -> Result<usize> {
    let statm = fs::read_to_string("/proc/self/statm").context("resident memory is read from /proc: Linux only")?;
    let pages: usize = statm.split_whitespace().nth(1).context("statm has no resident pages")?.parse()?;
    Ok(pages * 4096)
}
