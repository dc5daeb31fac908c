//! The cost of durability: flushes before the first event, turns per second, bytes written.

use std::{
    fs::{self, File},
    io::Write as _,
    path::Path,
    sync::Arc,
    time::Instant,
};

use anyhow::{Context, Result};
use everturn_kernel::{FinishReason, Provider, Request, StreamEvent};
use everturn_orchestrator::{Cursor, Journal, MemoryJournal, Orchestrator, StartTurn, Window};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::ConversationId;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};

/// Number of turns of each kind whose first event is timed.
const ROUNDS: usize = 400;
/// Number of turns for the rate, and how many run at once.
const TURNS: usize = 20_000;
const AT_ONCE: usize = 512;
/// Number of sequential turns, for the rate without concurrency.
const ALONE: usize = 500;
/// Number of turns whose bytes are counted, and deltas per turn.
const LONG_TURNS: usize = 100;
const DELTAS: usize = 200;

/// A provider that answers with this many words.
struct Words(usize);

impl Provider for Words {
    fn stream(&self, _: Request) -> BoxStream<'static, StreamEvent> {
        let words = (0..self.0).map(|n| StreamEvent::Text(format!("word {n} ")));
        stream::iter(words.chain([StreamEvent::Finished(FinishReason::Stop)])).boxed()
    }
}

/// Prints the p50 of a flush and of the first event in memory and in a file, in microseconds; turns per second in
/// memory, in a file, and sequentially in a file; and per turn, the bytes of content, bytes written until its seal,
/// bytes written in total, and bytes kept.
pub(crate) fn measure() -> Result<()> {
    // Not in the temporary directory, which may be in memory.
    let program = std::env::current_exe()?;
    let place = tempfile::tempdir_in(program.parent().context("the program is in no folder")?)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    runtime.block_on(async {
        let [flush, memory, durable] = first_events(place.path()).await?;
        let in_memory = rate(&orchestrator(1, Arc::new(MemoryJournal::default())), TURNS, AT_ONCE).await?;
        let file = orchestrator(1, open(place.path(), "rate.db")?);
        let together = rate(&file, TURNS, AT_ONCE).await?;
        let alone = rate(&file, ALONE, 1).await?;
        let [content, log, written, kept] = bytes(place.path()).await?;
        println!(
            "{flush} {memory} {durable} {in_memory} {together} {alone} {content} {log} {written} {kept}"
        );
        Ok(())
    })
}

fn open(place: &Path, name: &str) -> Result<Arc<SqliteJournal>> {
    Ok(Arc::new(SqliteJournal::open(place.join(name))?))
}

fn orchestrator(words: usize, journal: Arc<impl Journal>) -> Orchestrator {
    Orchestrator::builder().model("b", "m", Arc::new(Words(words))).journal(journal).build()
}

/// Returns the p50 in microseconds of a flush, the first word in memory, and the first word in a file. Alternates, so
/// that all see the same disk.
async fn first_events(place: &Path) -> Result<[f64; 3]> {
    let mut file = File::create(place.join("flush"))?;
    let memory = orchestrator(1, Arc::new(MemoryJournal::default()));
    let durable = orchestrator(1, open(place, "first.db")?);
    let mut all = [const { Vec::new() }; 3];
    for _ in 0..ROUNDS {
        all[0].push(flush(&mut file)?);
        all[1].push(first_event(&memory).await?);
        all[2].push(first_event(&durable).await?);
    }
    Ok(all.map(crate::median))
}

/// Does the minimum for durability: appends a page to a file, then calls fsync, like the journal.
fn flush(file: &mut File) -> Result<f64> {
    let started = Instant::now();
    file.write_all(&[7; 4096])?;
    file.sync_all()?;
    Ok(started.elapsed().as_secs_f64() * 1e6)
}

async fn first_event(orchestrator: &Orchestrator) -> Result<f64> {
    let started = Instant::now();
    let turn = orchestrator.start(prompt()).await?;
    let mut events = orchestrator.subscribe(&turn.conversation_id, Some(turn.from), false).await?;
    let mut first = None;
    loop {
        let frame = events.next().await?;
        if first.is_none() && frame.event().starts_with(br#"{"type":"text-delta""#) {
            first = Some(started.elapsed());
        }
        if frame.ends_turn() {
            return Ok(first.context("a turn without a word")?.as_secs_f64() * 1e6);
        }
    }
}

/// Returns the number of turns sealed per second, with this many at once.
async fn rate(orchestrator: &Orchestrator, turns: usize, at_once: usize) -> Result<f64> {
    let started = Instant::now();
    let all = (0..turns).map(|_| {
        let orchestrator = orchestrator.clone();
        tokio::spawn(async move { whole(&orchestrator).await })
    });
    let mut running = stream::iter(all).buffer_unordered(at_once);
    while let Some(turn) = running.next().await {
        turn??;
    }
    Ok(turns as f64 / started.elapsed().as_secs_f64())
}

/// Runs a turn to its seal, and returns its conversation.
async fn whole(orchestrator: &Orchestrator) -> Result<ConversationId> {
    let turn = orchestrator.start(prompt()).await?;
    let mut events = orchestrator.subscribe(&turn.conversation_id, Some(turn.from), false).await?;
    while !events.next().await?.ends_turn() {}
    Ok(turn.conversation_id)
}

/// Returns per turn of 200 deltas: bytes of its events and chunks, bytes written until its seal, bytes written until
/// the file is closed, and bytes kept.
async fn bytes(place: &Path) -> Result<[usize; 4]> {
    let (mut content, before, log);
    {
        let journal = open(place, "bytes.db")?;
        // Creating the file does not count.
        (content, before) = (0, written()?);
        let orchestrator = orchestrator(DELTAS, journal.clone());
        for _ in 0..LONG_TURNS {
            let id = whole(&orchestrator).await?;
            let events = journal.events(&id, Cursor::default(), usize::MAX).await?;
            content += events.iter().map(|event| event.json.len()).sum::<usize>();
            for chunk in journal.chunks(&id, Window::default()).await? {
                content += serde_json::to_string(&chunk.chunk)?.len();
            }
        }
        log = written()? - before;
    }
    // The last owner of the journal may be a task that is about to end.
    while place.join("bytes.db-wal").exists() {
        tokio::task::yield_now().await;
    }
    let kept = fs::metadata(place.join("bytes.db"))?.len() as usize;
    Ok([content, log, written()? - before, kept].map(|bytes| bytes / LONG_TURNS))
}

fn prompt() -> StartTurn {
    StartTurn::new("What is the answer?")
}

/// Returns the bytes that this process has passed to the system for writing.
fn written() -> Result<usize> {
    let io = fs::read_to_string("/proc/self/io").context("bytes are counted by /proc: Linux only")?;
    let line =
        io.lines().find_map(|line| line.strip_prefix("wchar: ")).context("no wchar in /proc/self/io")?;
    Ok(line.parse()?)
}
