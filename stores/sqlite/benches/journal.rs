//! What durability costs: time and bytes. Run it where the journal will live: `cargo bench -p everturn-store-sqlite`.
#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a benchmark prints, and fails by panicking")]

use std::{
    collections::{BTreeMap, HashMap},
    fs,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_orchestrator::{
    Commit, Cursor, Journal, Orchestrator, RetryPolicy, StartTurn, Unsealed, Version, Window,
    kernel::{FinishReason, Millis, Provider, Request, Retry, Schedule, StreamEvent},
};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::{Category, ConversationId, Failure};
use futures_util::{
    StreamExt as _,
    future::join_all,
    stream::{self, BoxStream},
};

/// Answers "long" with 200 deltas and everything else with an overload.
struct Moody;

impl Provider for Moody {
    fn stream(&self, request: Request) -> BoxStream<'static, StreamEvent> {
        let answer = match request.messages.last().map(|message| format!("{message:?}")) {
            Some(prompt) if prompt.contains("long") => {
                let deltas = (0..200).map(|n| StreamEvent::Text(format!("word {n} ")));
                deltas.chain([StreamEvent::Finished(FinishReason::Stop)]).collect()
            }
            _ => {
                let body = r#"HTTP 529: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
                vec![StreamEvent::Failed(Failure::new(Category::Overloaded, true, body))]
            }
        };
        stream::iter(answer).boxed()
    }
}

struct Hourly;

impl Schedule for Hourly {
    fn delay_for(&self, _: &Retry<'_>) -> Option<Duration> {
        Some(Duration::from_secs(3600))
    }
}

fn orchestrator(journal: &Arc<SqliteJournal>) -> Orchestrator {
    Orchestrator::builder()
        .model("m", "m", Arc::new(Moody))
        .schedule(RetryPolicy::own(Hourly))
        .journal(journal.clone())
        .build()
}

fn prompt(text: &str) -> StartTurn {
    StartTurn::new(text)
}

async fn waiting(journal: &SqliteJournal) -> usize {
    let all = journal.unsealed(Millis(u64::MAX)).await.unwrap();
    all.iter().filter(|turn| turn.wait.until().is_some()).count()
}

fn size(path: &Path) -> u64 {
    fs::metadata(path).unwrap().len()
}

/// What this process had written to the disk; 0 where the system does not say.
fn written() -> u64 {
    let text = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

/// What a conversation is made of, to be written again under other names.
async fn template(journal: &SqliteJournal) -> Commit {
    let Unsealed { id, .. } = journal.unsealed(Millis(u64::MAX)).await.unwrap().swap_remove(0);
    let stored = journal.load(&id).await.unwrap().unwrap();
    let chunks = journal.chunks(&id, Window::default()).await.unwrap();
    let events = journal.events(&id, Cursor::default(), usize::MAX).await.unwrap();
    Commit { chunks, events, turn: stored.turn.map(Box::new), ..Commit::new(stored.head) }
}

async fn appends(journal: &SqliteJournal, commit: &Commit, total: usize, together: usize) -> Duration {
    let ids: Vec<_> = (0..total).map(|n| ConversationId::from(format!("copy-{together}-{n:036}"))).collect();
    let start = Instant::now();
    for group in ids.chunks(together) {
        let all = group.iter().map(|id| journal.append(id, Version(0), commit.clone()));
        assert!(join_all(all).await.iter().all(Result::is_ok));
    }
    start.elapsed()
}

async fn parked(directory: &Path) -> Commit {
    const TURNS: usize = 10_000;
    let path = directory.join("parked.db");
    let journal = Arc::new(SqliteJournal::open(&path).unwrap());
    let orchestrator = orchestrator(&journal);
    let start = Instant::now();
    for _ in 0..TURNS / 50 {
        let started = (0..50).map(|_| orchestrator.start(prompt("What will the weather be tomorrow?")));
        assert!(join_all(started).await.iter().all(Result::is_ok));
    }
    while waiting(&journal).await < TURNS {
        tokio::task::yield_now().await;
    }
    println!("{TURNS} turns begun and parked through the orchestrator: {:.1?}", start.elapsed());
    let commit = template(&journal).await;
    checkpoint(&path);
    println!("  a parked conversation: {} bytes of the file", size(&path) / TURNS as u64);
    commit
}

/// Moves what is in the log to the file, as closing does.
fn checkpoint(path: &Path) {
    let connection = rusqlite::Connection::open(path).unwrap();
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
}

async fn speed(directory: &Path, commit: &Commit) {
    for (total, together) in [(1_000, 1), (25_600, 64)] {
        let journal = SqliteJournal::open(directory.join(format!("speed-{together}.db"))).unwrap();
        let took = appends(&journal, commit, total, together).await;
        println!("durable appends, {together} at a time: {:.0}/s", total as f64 / took.as_secs_f64());
    }
}

async fn restart(directory: &Path, commit: &Commit) {
    let path = directory.join("many.db");
    let journal = SqliteJournal::open(&path).unwrap();
    appends(&journal, commit, 100_000, 64).await;
    drop(journal);
    println!("100,000 parked: {} MB", size(&path) >> 20);
    let start = Instant::now();
    let journal = SqliteJournal::open(&path).unwrap();
    let opened = start.elapsed();
    let found = journal.unsealed(Millis(u64::MAX)).await.unwrap().len();
    println!("  open {opened:.1?}, then read {found} unsealed turns {:.1?}", start.elapsed() - opened);

    // A copy of it while it is open is what a kill leaves.
    journal.append(&ConversationId::from("last"), Version(0), commit.clone()).await.unwrap();
    let killed = directory.join("killed.db");
    fs::copy(&path, &killed).unwrap();
    fs::copy(directory.join("many.db-wal"), directory.join("killed.db-wal")).unwrap();
    let start = Instant::now();
    SqliteJournal::open(&killed).unwrap();
    println!("  after a kill: open and close {:.1?}", start.elapsed());
}

async fn amplification(directory: &Path) {
    // So few that all they wrote is still in the log.
    const TURNS: usize = 40;
    let path = directory.join("turn.db");
    let journal = Arc::new(SqliteJournal::open(&path).unwrap());
    let orchestrator = orchestrator(&journal);
    let before = written();
    let mut payload = 0;
    for _ in 0..TURNS {
        let started = orchestrator.start(prompt("long")).await.unwrap();
        let id = started.conversation_id;
        while journal.metrics(&id).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
        let events = journal.events(&id, Cursor::default(), usize::MAX).await.unwrap();
        let chunks = journal.chunks(&id, Window::default()).await.unwrap();
        payload += events.iter().map(|event| event.json.len()).sum::<usize>();
        payload +=
            chunks.iter().map(|chunk| serde_json::to_string(&chunk.chunk).unwrap().len()).sum::<usize>();
    }
    let log = written() - before;
    pages(&path, TURNS);
    checkpoint(&path);
    let (all, payload) = (written() - before, payload as u64);
    println!("a turn of 200 deltas: {} bytes of events and chunks", payload / TURNS as u64);
    println!("  written: {} bytes, with the checkpoint {}", log / TURNS as u64, all / TURNS as u64);
    println!(
        "  = {:.1} times; kept in the file {:.1} times",
        all as f64 / payload as f64,
        size(&path) as f64 / payload as f64
    );
}

/// Prints the pages that the log has of each table and index, for each turn: what a commit touches.
fn pages(path: &Path, turns: usize) {
    let connection = rusqlite::Connection::open(path).unwrap();
    let mut owners = connection.prepare("SELECT pageno, name FROM dbstat").unwrap();
    let owners: HashMap<u32, String> =
        owners.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    let size: u32 = connection.query_row("SELECT * FROM pragma_page_size", [], |row| row.get(0)).unwrap();
    let log = fs::read(path.with_extension("db-wal")).unwrap();
    // The format is documented: a header of 32 bytes; before each page 24 bytes, which begin with its number and, where a
    // transaction ends, the size of the database.
    let (mut touched, mut commits) = (BTreeMap::new(), 0);
    for frame in log[32..].chunks_exact(24 + size as usize) {
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        commits += usize::from(word(4) > 0);
        *touched.entry(owners.get(&word(0)).map_or("(free)", String::as_str)).or_insert(0) += 1;
    }
    println!("pages of {size} bytes in the log, for each of {turns} turns ({commits} commits):");
    for (name, pages) in touched {
        println!("  {name}: {:.2}", f64::from(pages) / turns as f64);
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    // Not where temporary files are kept: that may be memory.
    let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    // `cargo bench -p everturn-store-sqlite -- bytes`: only what a turn writes.
    if !std::env::args().any(|arg| arg == "bytes") {
        let commit = parked(directory.path()).await;
        speed(directory.path(), &commit).await;
        restart(directory.path(), &commit).await;
    }
    amplification(directory.path()).await;
}
