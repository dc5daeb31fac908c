//! Figures, not checks: `cargo test -p everturn-store-nats --release --test nats -- --ignored --nocapture speed`.

use std::{
    env,
    sync::Arc,
    time::{Duration, Instant},
};

use everturn_orchestrator::{Commit, Journal, Moment, Version, Wait, kernel::Millis};
use everturn_sim::nats::{self, NatsCluster, NatsConfig};
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;

use crate::support::{Server, numbered, turn};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and checks nothing"]
async fn appends() {
    let Some(program) = nats::program() else { return };
    for sync in ["", "sync_interval: always"] {
        let store = NatsConfig { jetstream: sync, ..NatsConfig::default() };
        let server = Server::start_with(store).await.unwrap();
        measure(&format!("R1 {sync}"), server.options()).await;
        drop(server);
        let directory = tempfile::tempdir().unwrap();
        let cluster = NatsCluster::start(&program, directory.path(), store).await;
        measure(&format!("R3 {sync}"), Options::new(cluster.urls())).await;
    }
}

async fn measure(what: &str, options: Options) {
    let journal = Arc::new(NatsJournal::connect(&options).await.unwrap());
    for (writers, appends) in [(1, 2_000), (64, 300)] {
        let begun = Instant::now();
        let writers = (0..writers).map(|writer| {
            let journal = journal.clone();
            tokio::spawn(async move {
                let id = ConversationId::from(format!("{writers}-{writer}").as_str());
                let (mut version, mut took) = (Version(0), Vec::new());
                for number in 1..=appends {
                    let commit = numbered(number, &"x".repeat(200)).turn(turn());
                    let begun = Instant::now();
                    version = journal.append(&id, version, commit).await.unwrap();
                    took.push(begun.elapsed());
                }
                took
            })
        });
        let count = writers.len();
        let took = futures_util::future::join_all(writers.collect::<Vec<_>>()).await;
        let mut took: Vec<Duration> = took.into_iter().flat_map(Result::unwrap).collect();
        took.sort();
        let rate = took.len() as f64 / begun.elapsed().as_secs_f64();
        let at = |part: usize| took[took.len() * part / 100];
        println!("{what}, {count} writers: {rate:.0}/s, p50 {:?}, p99 {:?}", at(50), at(99));
    }
}

/// Environment variable: number of conversations.
const CONVERSATIONS: &str = "EVERTURN_CONVERSATIONS";

/// Environment variable: the server of the process that reads.
const SERVER: &str = "EVERTURN_SPEED_SERVER";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and checks nothing"]
async fn index() {
    if env::var_os(SERVER).is_some() {
        return;
    }
    let count = env::var(CONVERSATIONS).ok().and_then(|count| count.parse().ok()).unwrap_or(100_000);
    let server = Server::start("").await.unwrap();
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    let appends = (0..count).map(|n: u32| {
        let journal = &journal;
        async move {
            // As long as a UUID, and in no order.
            let id = ConversationId::from(format!("{:08x}-3b1e-4c6a-9d57-2f0a8e41c7d6", n.reverse_bits()));
            let mut commit = if n.is_multiple_of(10) { turn_until(5) } else { numbered(1, "idle") };
            commit.head.title = format!("What is the capital of country number {n}?");
            commit.head.model = Some("openai/gpt-5".to_owned());
            commit.head.last_activity_at = Millis(n.into());
            journal.append(&id, Version(0), commit).await.unwrap();
        }
    });
    let begun = Instant::now();
    futures_util::stream::iter(appends).buffer_unordered(256).count().await;
    println!("{count} conversations written in {:?}", begun.elapsed());
    // In its own process, whose memory is only the index's.
    let reader = std::process::Command::new(env::current_exe().unwrap())
        .args(["--ignored", "--nocapture", "--exact", "speed::read"])
        .env(SERVER, server.server.url())
        .status();
    assert!(reader.unwrap().success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a part of another"]
async fn read() {
    let Ok(server) = env::var(SERVER) else { return };
    let options = || {
        let mut options = Options::new([&server]);
        options.prefix = "t1".to_owned();
        options
    };
    let [journal, other] =
        [NatsJournal::connect(&options()).await.unwrap(), NatsJournal::connect(&options()).await.unwrap()];
    let (before, begun) = (resident(), Instant::now());
    assert_eq!(journal.drop_ephemeral(Millis(0)).await.unwrap(), []);
    println!("read at first in {:?}, {:?} of this process", begun.elapsed(), cpu_time());
    let after = resident();
    let count = journal.conversations(everturn_orchestrator::Page::default()).await.unwrap().len();
    println!("{count} conversations, {} bytes each", (after - before) * 1024 / count);
    let page = || everturn_orchestrator::Page { limit: Some(50), ..Default::default() };
    let mut took = [Vec::new(), Vec::new(), Vec::new()];
    for n in 0..200 {
        let begun = Instant::now();
        journal.unsealed(Millis(u64::MAX)).await.unwrap();
        took[0].push(begun.elapsed());
        let begun = Instant::now();
        journal.conversations(page()).await.unwrap();
        took[1].push(begun.elapsed());
        // Right after another process has written.
        other
            .append(&format!("new {n}").as_str().into(), Version(0), numbered(u64::MAX - n, ""))
            .await
            .unwrap();
        let begun = Instant::now();
        journal.conversations(page()).await.unwrap();
        took[2].push(begun.elapsed());
    }
    for (what, mut took) in ["unsealed", "a page of 50", "a page after an append"].into_iter().zip(took) {
        took.sort();
        println!("{what}: p50 {:?}, p99 {:?}", took[100], took[198]);
    }
}

/// Returns the processor time of this process, in its user part.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let ticks: u64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(11).unwrap().parse().unwrap();
    Duration::from_millis(ticks * 10)
}

/// Returns the memory of this process, in KiB.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn turn_until(at: u64) -> Commit {
    let mut turn = turn();
    turn.wait = Wait::Until(Moment { at: Millis(at), decided_ms: at });
    numbered(1, "waiting").turn(turn)
}
