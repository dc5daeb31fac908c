//! The cost of a waiting turn: in memory, and parked in a file.

use std::{
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use everturn_kernel::{
    Arguments, FinishReason, Provider, Request, StreamEvent, ToolAnswer, ToolCall, ToolSpec,
};
use everturn_orchestrator::{
    Builder, Exponential, Invocation, Orchestrator, Policy, StartTurn, Started, Tool,
};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::{Category, Failure};
use futures_util::{StreamExt, future, stream, stream::BoxStream};
use rusqlite::{Connection, OpenFlags};
use serde_json::json;
use tokio::sync::watch;

const TURNS: usize = 10_000;
/// The provider's response about a rate limit, as adapters report it.
const LIMITED: &str = concat!(
    r#"HTTP 429: {"error":{"message":"Rate limit reached for gpt-4o in organization org-a1B2c3 on requests per min "#,
    r#"(RPM): Limit 500, Used 500, Requested 1. Please try again in 50s.","type":"requests","param":null,"#,
    r#""code":"rate_limit_exceeded"}}"#,
);
/// Number of turns that begin at once, and share the flushes of the file.
const AT_ONCE: usize = 512;
const WARM: usize = 20_000;

/// Which turns are refused: only the first one, so that the others wait because of it, or all of them, because they ask
/// at once.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    First,
    All,
}

/// What parked turns wait for.
#[derive(Clone, Copy)]
pub(crate) enum Parked {
    Clock,
    /// A person, without a timeout.
    Person,
}

impl Parked {
    fn builder(self) -> Builder {
        match self {
            Self::Clock => builder(),
            Self::Person => Orchestrator::builder().model("b", "m", Arc::new(Calls)).tool(Shell),
        }
    }

    /// Returns the condition for the rows of such turns.
    fn rows(self) -> &'static str {
        match self {
            Self::Clock => "wake_at IS NOT NULL",
            Self::Person => "for_person = 1",
        }
    }
}

/// A provider that calls a tool.
struct Calls;

impl Provider for Calls {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let arguments = Arguments::Parsed(json!({ "command": "rm -r build" }));
        let call = ToolCall { id: "call_1".to_owned(), name: "shell".to_owned(), arguments, echo: None };
        let events = [StreamEvent::ToolCall(call), StreamEvent::Finished(FinishReason::ToolCalls)];
        stream::iter(events).boxed()
    }
}

/// A tool that needs approval for each call, and never gets it.
struct Shell;

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> ToolSpec {
        let parameters = json!({ "type": "object" });
        ToolSpec { name: "shell".to_owned(), description: "Runs a command.".to_owned(), parameters }
    }

    fn policy(&self) -> Policy {
        Policy::Ask
    }

    async fn run(&self, _: Invocation) -> ToolAnswer {
        ToolAnswer::error("nobody allowed it")
    }
}

/// A provider that is always overloaded.
struct Overloaded;

impl Provider for Overloaded {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let failure = Failure::new(Category::Overloaded, true, "HTTP 529: overloaded");
        stream::once(future::ready(StreamEvent::Failed(failure))).boxed()
    }
}

/// A provider that refuses every call for a while, once it may answer.
struct Limited {
    answers: watch::Sender<bool>,
}

impl Provider for Limited {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let mut failure = Failure::new(Category::RateLimited, true, LIMITED);
        (failure.code, failure.hint_ms) = (Some("429".to_owned()), Some(50_000));
        let mut answers = self.answers.subscribe();
        let refusal = async move {
            // The provider lives as long as its orchestrator.
            let _ = answers.wait_for(|answers| *answers).await;
            StreamEvent::Failed(failure)
        };
        stream::once(refusal).boxed()
    }
}

/// Prints bytes per waiting turn, including the journal's record, as the growth of the process.
pub(crate) fn measure(refused: Refused) -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let limited = Arc::new(Limited { answers: watch::Sender::new(true) });
        let builder = Orchestrator::builder().model("warm", "m", limited.clone());
        let orchestrator = builder.model("b", "m", limited.clone()).build();
        // The first turns include shared costs.
        let turns = begin(&orchestrator, "warm/m", 500).await?;
        wait(&orchestrator, &turns).await?;
        let before = resident("self")?;
        limited.answers.send_replace(refused == Refused::First);
        let turns = begin(&orchestrator, "b/m", TURNS).await?;
        while refused == Refused::All && limited.answers.receiver_count() < TURNS {
            tokio::task::yield_now().await;
        }
        limited.answers.send_replace(true);
        wait(&orchestrator, &turns).await?;
        drop(turns);
        println!("{}", resident("self")?.saturating_sub(before) / TURNS);
        Ok(())
    })
}

/// Prints, for each kind: bytes per parked turn in the process, bytes per parked turn in the file, turns parked per
/// second, milliseconds from opening the file until every wait is in the timer index, and the growth of the process by
/// then, in bytes.
pub(crate) fn parked(turns: usize, kind: Parked) -> Result<()> {
    let place = tempfile::tempdir()?;
    let path = place.path().join("bench.db");
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let (held, per_second) = runtime()?.block_on(async {
        let orchestrator = kind.builder().journal(Arc::new(SqliteJournal::open(&path)?)).build();
        // The first turns fill the caches of the file.
        park(&orchestrator, WARM).await?;
        until_parked(&path, kind, WARM).await?;
        let (before, started) = (resident("self")?, Instant::now());
        park(&orchestrator, turns).await?;
        until_parked(&path, kind, WARM + turns).await?;
        let per_second = turns as f64 / started.elapsed().as_secs_f64();
        anyhow::Ok((resident("self")?.saturating_sub(before) / turns, per_second))
    })?;
    let file = fs::metadata(&path)?.len() as usize / (turns + WARM);
    let runtime = runtime()?;
    let (before, started) = (resident("self")?, Instant::now());
    let (resumed, took, grown) = runtime.block_on(async {
        let orchestrator = kind.builder().journal(Arc::new(SqliteJournal::open(&path)?)).build();
        let resumed = orchestrator.resume().await?;
        // Before everything is dropped.
        anyhow::Ok((resumed, started.elapsed(), resident("self")?.saturating_sub(before)))
    })?;
    let timed = match kind {
        Parked::Clock => turns + WARM,
        // Their wait does not end by itself, so there is nothing to do.
        Parked::Person => 0,
    };
    ensure!(resumed == timed, "{resumed} turns were resumed, not {timed}");
    let known = grown / (turns + WARM);
    println!("{held} {file} {per_second} {} {known}", took.as_secs_f64() * 1e3);
    Ok(())
}

async fn park(orchestrator: &Orchestrator, turns: usize) -> Result<()> {
    let start = || {
        let orchestrator = orchestrator.clone();
        async move {
            let text = "What is the answer?".to_owned();
            orchestrator.start(StartTurn::new(text)).await
        }
    };
    let mut started = stream::iter((0..turns).map(|_| tokio::spawn(start()))).buffer_unordered(AT_ONCE);
    while let Some(turn) = started.next().await {
        turn??;
    }
    Ok(())
}

/// Queries the file and not the journal, because a list of all turns would count as their cost.
async fn until_parked(path: &Path, kind: Parked, turns: usize) -> Result<()> {
    let file = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut waiting = file.prepare(&format!("SELECT count(*) FROM conversation WHERE {}", kind.rows()))?;
    while waiting.query_row([], |row| row.get::<_, i64>(0))? < turns as i64 {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    Ok(())
}

/// Returns a builder with waits of an hour.
fn builder() -> Builder {
    let hours = Duration::from_secs(3600);
    let schedule = Exponential { base: hours, max_delay: None, ..Exponential::default() };
    Orchestrator::builder().model("b", "m", Arc::new(Overloaded)).schedule(schedule)
}

/// Starts turns, and returns where their events begin.
async fn begin(orchestrator: &Orchestrator, model: &str, turns: usize) -> Result<Vec<Started>> {
    let mut all = Vec::with_capacity(turns);
    for _ in 0..turns {
        let mut start = StartTurn::new("What is the answer?");
        start.model = Some(model.to_owned());
        all.push(orchestrator.start(start).await?);
    }
    Ok(all)
}

/// Checks that each of these turns waits.
async fn wait(orchestrator: &Orchestrator, turns: &[Started]) -> Result<()> {
    for turn in turns {
        let mut events = orchestrator.subscribe(&turn.conversation_id, Some(turn.from), false).await?;
        while !events.next().await?.event().starts_with(br#"{"type":"provider-retry""#) {}
    }
    Ok(())
}

/// Returns the resident memory of a process, in bytes.
pub(crate) fn resident(process: &str) -> Result<usize> {
    let statm = fs::read_to_string(format!("/proc/{process}/statm"))
        .context("resident memory is read from /proc: Linux only")?;
    let pages: usize = statm.split_whitespace().nth(1).context("statm has no resident pages")?.parse()?;
    Ok(pages * 4096)
}
