//! The primary dies, and its standby takes over. With synchronous replication, what was acknowledged is there. With
//! asynchronous replication, the last appends may be lost, and no others.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Cursor, Journal, JournalError, Version};
use everturn_sim::{
    nats::wait_for,
    postgres::{self, PostgresServer},
};
use everturn_store_postgres::{Options, PostgresJournal};
use tempfile::TempDir;
use tokio::sync::watch;

use crate::{
    restart::{audit, write},
    support::{Server, id, numbered, texts},
};

/// Number of conversations that are written at the same time.
const WRITERS: usize = 12;

/// Appends before and after the failover.
const APPENDS: i64 = 100;

struct Pair {
    primary: Server,
    standby: PostgresServer,
    _directory: TempDir,
}

impl Pair {
    /// `None` if there is no Postgres on this machine, or none that can copy itself.
    async fn start() -> Option<Self> {
        if !postgres::programs()?.join("pg_basebackup").is_file() {
            eprintln!("skipped: this Postgres has no pg_basebackup");
            return None;
        }
        let primary = Server::start().await?;
        let directory = tempfile::tempdir().unwrap();
        let standby = primary.server.standby(directory.path()).await;
        Some(Self { primary, standby, _directory: directory })
    }

    /// Returns options with both servers, of which the one that can be written to is used.
    fn options(&self) -> Options {
        let mut options = self.primary.options();
        let both = format!("{},{}", self.primary.server.address(), self.standby.address());
        options.url = format!("{}?target_session_attrs=read-write", self.primary.server.url_at(&both));
        options
    }

    /// Waits until the standby replicates like this: `sync` or `async`.
    async fn replicates(&self, how: &str) {
        let state = async || {
            let state = self.primary.server.sql("SELECT sync_state FROM pg_stat_replication");
            (state == how).then_some(())
        };
        wait_for("the standby replicates", state).await;
    }
}

fn written(server: &PostgresServer) -> i64 {
    let sum = "SELECT coalesce(sum(version), 0) FROM journal_1.conversation";
    server.sql(sum).parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_synchronous_replication_a_failover_loses_nothing_that_was_acknowledged() {
    let Some(mut pair) = Pair::start().await else { return };
    pair.primary.server.sql("ALTER SYSTEM SET synchronous_standby_names = '*'");
    pair.primary.server.sql("SELECT pg_reload_conf()");
    pair.replicates("sync").await;
    let journal = Arc::new(PostgresJournal::open(&pair.options()).await.unwrap());
    let (kills, killed) = watch::channel(0);
    let writers: Vec<_> = (0..WRITERS)
        .map(|n| tokio::spawn(write(journal.clone(), format!("c{n}"), killed.clone(), 1)))
        .collect();
    let more = async |server: &PostgresServer, floor: i64| {
        wait_for("more is written", async || (written(server) >= floor).then_some(())).await;
    };
    more(&pair.primary.server, APPENDS).await;
    pair.primary.server.kill();
    pair.standby.promote();
    more(&pair.standby, written(&pair.standby) + APPENDS).await;
    kills.send_replace(1);
    audit(&journal, writers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_asynchronous_replication_a_failover_loses_the_last_appends_alone() {
    let Some(mut pair) = Pair::start().await else { return };
    pair.replicates("async").await;
    let journal = PostgresJournal::open(&pair.options()).await.unwrap();
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    journal.append(&id(), Version(1), numbered(2, "two")).await.unwrap();
    wait_for("the standby has both", async || {
        let stored = pair.standby.sql("SELECT to_regclass('journal_1.conversation') IS NOT NULL");
        (stored == "t" && written(&pair.standby) == 2).then_some(())
    })
    .await;
    pair.standby.kill();
    journal.append(&id(), Version(2), numbered(3, "three")).await.unwrap();
    journal.append(&id(), Version(3), numbered(4, "four")).await.unwrap();
    pair.primary.server.kill();
    pair.standby.restart().await;
    pair.standby.promote();

    let answer = journal.append(&id(), Version(4), numbered(5, "five")).await;
    let stale = JournalError::Stale { id: id(), expected: Version(4), found: Version(2) };
    assert_eq!(answer, Err(stale), "it is told that what it knew is not there");
    assert_eq!(texts(&journal).await, ["one", "two"]);
    assert_eq!(journal.append(&id(), Version(2), numbered(3, "anew")).await, Ok(Version(3)));
    assert_eq!(texts(&journal).await, ["one", "two", "anew"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_former_primary_that_comes_back_as_one_is_not_used() {
    let Some(mut pair) = Pair::start().await else { return };
    pair.replicates("async").await;
    let options = Options { give_up_after: Duration::from_secs(1), ..pair.options() };
    let journal = PostgresJournal::open(&options).await.unwrap();
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    wait_for("the standby has it", async || {
        let stored = pair.standby.sql("SELECT to_regclass('journal_1.conversation') IS NOT NULL");
        (stored == "t" && written(&pair.standby) == 1).then_some(())
    })
    .await;
    pair.primary.server.kill();
    pair.standby.promote();
    let two = async || journal.append(&id(), Version(1), numbered(2, "two")).await.ok();
    assert_eq!(wait_for("the standby takes writes", two).await, Version(2));

    // It is the first host of the URL.
    pair.primary.server.restart().await;
    pair.standby.kill();
    let error = journal.append(&id(), Version(2), numbered(3, "three")).await.unwrap_err();
    assert!(
        error.to_string().contains("was replaced by another (its timeline is 1, the latest 2)"),
        "{error}"
    );
    pair.standby.restart().await;
    let three = async || journal.append(&id(), Version(2), numbered(3, "three")).await.ok();
    assert_eq!(wait_for("the one that took over is found", three).await, Version(3));
    // Reading has connections of its own, which look for it, too.
    let read = async || journal.events(&id(), Cursor::default(), 9).await.ok();
    wait_for("it is found for reading", read).await;
    assert_eq!(texts(&journal).await, ["one", "two", "three"]);
    assert_eq!((written(&pair.primary.server), written(&pair.standby)), (1, 3));
}
