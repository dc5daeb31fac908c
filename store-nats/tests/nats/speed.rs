//! Figures, not checks: `cargo test -p everturn-store-nats --release --test nats -- --ignored --nocapture speed`.

use std::{
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "takes minutes and checks nothing"]
async fn unsealed() {
    let server = Server::start("").await.unwrap();
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    let waiting = turn_until(5);
    let appends = (0..100_000).map(|n: u32| {
        let (journal, waiting) = (&journal, &waiting);
        async move {
            let id = ConversationId::from(n.to_string().as_str());
            let commit = if n.is_multiple_of(10) { waiting.clone() } else { numbered(1, "idle") };
            journal.append(&id, Version(0), commit).await.unwrap();
        }
    });
    let begun = Instant::now();
    futures_util::stream::iter(appends).buffer_unordered(256).count().await;
    println!("100,000 conversations written in {:?}", begun.elapsed());
    let begun = Instant::now();
    let found = journal.unsealed(Millis(u64::MAX)).await.unwrap();
    println!("{} unsealed found in {:?}", found.len(), begun.elapsed());
    let begun = Instant::now();
    let page = everturn_orchestrator::Page { after: None, limit: Some(50) };
    println!("{} listed in {:?}", journal.conversations(page).await.unwrap().len(), begun.elapsed());
}

fn turn_until(at: u64) -> Commit {
    let mut turn = turn();
    turn.wait = Wait::Until(Moment { at: Millis(at), decided_ms: at });
    numbered(1, "waiting").turn(turn)
}
