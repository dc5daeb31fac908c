//! Postgres is killed under appends and started again.

use std::sync::Arc;

use everturn_orchestrator::{Journal, JournalError, Version};
use everturn_store_postgres::PostgresJournal;
use futures_util::future::join_all;
use tokio::{sync::watch, task::JoinHandle};

use crate::support::{Server, id, numbered, texts, turn};

/// Number of conversations that are written at the same time, and kills.
const WRITERS: usize = 24;
const KILLS: usize = 4;

/// Appends until it was killed so many times, and returns the number of acknowledged appends: each outcome is checked.
pub(crate) async fn write(
    journal: Arc<PostgresJournal>,
    name: String,
    mut killed: watch::Receiver<usize>,
    kills: usize,
) -> u64 {
    let id = name.as_str().into();
    let (mut version, mut number) = (Version(0), 1);
    while *killed.borrow_and_update() < kills || number < 5 {
        match journal.append(&id, version, numbered(number, "x").turn(turn())).await {
            Ok(next) => {
                assert_eq!(next, Version(version.0 + 1));
                (version, number) = (next, number + 1);
            }
            Err(JournalError::Unknown(_)) => {
                let stored = journal.load(&id).await.unwrap().map_or(Version(0), |stored| stored.version);
                assert!([version, Version(version.0 + 1)].contains(&stored), "{stored:?}");
                if stored > version {
                    number += 1;
                }
                version = stored;
            }
            Err(error) => panic!("{name} at {version:?}: {error}"),
        }
    }
    version.0
}

/// Compares what the writers were told with what is stored.
pub(crate) async fn audit(journal: &PostgresJournal, writers: Vec<JoinHandle<u64>>) {
    let versions = join_all(writers).await;
    for (n, version) in versions.into_iter().enumerate() {
        let (id, version) = (format!("c{n}"), version.unwrap());
        let stored = journal.load(&id.as_str().into()).await.unwrap().unwrap();
        assert_eq!(stored.version, Version(version));
        let history = journal.chunks(&id.as_str().into(), everturn_orchestrator::Window::default()).await;
        let seqs: Vec<u64> = history.unwrap().iter().map(|chunk| chunk.seq).collect();
        assert_eq!(seqs, (1..=version).collect::<Vec<_>>(), "each append was stored once");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_are_stored_once_and_told_as_they_are_whenever_postgres_is_killed() {
    let Some(mut server) = Server::start().await else { return };
    let journal = Arc::new(PostgresJournal::open(&server.options()).await.unwrap());
    let (kills, killed) = watch::channel(0);
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| tokio::spawn(write(journal.clone(), format!("c{n}"), killed.clone(), KILLS)))
        .collect();
    for kill in 1..=KILLS {
        // Something was written since the last time.
        let floor: i64 = server.sql("SELECT coalesce(sum(version), 0) FROM conversation").parse().unwrap();
        everturn_sim::nats::wait_for("more is written", async || {
            let sum: i64 = server.sql("SELECT coalesce(sum(version), 0) FROM conversation").parse().unwrap();
            (sum >= floor + 50).then_some(())
        })
        .await;
        server.server.restart().await;
        kills.send_replace(kill);
    }
    audit(&journal, writers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_restart_between_appends_is_not_noticed() {
    let Some(mut server) = Server::start().await else { return };
    let journal = PostgresJournal::open(&server.options()).await.unwrap();
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    server.server.restart().await;
    assert_eq!(texts(&journal).await, ["one"]);
    assert_eq!(journal.append(&id(), Version(1), numbered(2, "two")).await, Ok(Version(2)));
    assert_eq!(texts(&journal).await, ["one", "two"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frozen_database_is_waited_for_and_an_append_is_stored_once() {
    let Some(server) = Server::start().await else { return };
    let mut options = server.options();
    options.answer_within = std::time::Duration::from_secs(2);
    options.give_up_after = std::time::Duration::from_secs(60);
    let journal = Arc::new(PostgresJournal::open(&options).await.unwrap());
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    server.server.freeze();
    let appending = {
        let journal = journal.clone();
        tokio::spawn(async move { journal.append(&id(), Version(1), numbered(2, "two")).await })
    };
    everturn_sim::nats::wait_for("there is no answer in time", async || {
        (journal.lost_answers() > 0).then_some(())
    })
    .await;
    server.server.thaw();
    assert_eq!(appending.await.unwrap(), Ok(Version(2)));
    assert_eq!(texts(&journal).await, ["one", "two"]);
}
