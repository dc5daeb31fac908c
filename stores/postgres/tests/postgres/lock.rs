//! One server uses a database.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Journal, JournalError, StateStore as _, Version};
use everturn_sim::nats::wait_for;
use everturn_store_postgres::{OpenError, PostgresJournal};
use futures_util::future::join_all;

use crate::support::{Server, id, numbered, texts};

#[tokio::test]
async fn a_second_server_is_refused_until_the_first_has_gone() {
    let Some(server) = Server::start().await else { return };
    let options = server.options();
    let first = PostgresJournal::open(&options).await.unwrap();
    first.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    let error = PostgresJournal::open(&options).await.unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains("schema journal_1 is in use by another Everturn server"), "{text}");
    assert!(text.contains("connected from 127.0.0.1 since 2"), "{text}");
    first.append(&id(), Version(1), numbered(2, "two")).await.unwrap();
    // Another schema is another journal.
    PostgresJournal::open(&server.options()).await.unwrap();
    drop(first);
    let mut options = options;
    options.lock_within = Duration::from_secs(60);
    let second = PostgresJournal::open(&options).await.unwrap();
    assert_eq!(texts(&second).await, ["one", "two"]);
}

#[tokio::test]
async fn of_servers_that_start_at_once_one_makes_the_tables() {
    let Some(server) = Server::start().await else { return };
    let options = server.options();
    let opened = join_all((0..6).map(|_| PostgresJournal::open(&options))).await;
    let (winners, others): (Vec<_>, Vec<_>) = opened.into_iter().partition(Result::is_ok);
    assert_eq!(winners.len(), 1);
    for other in others {
        let error = other.unwrap_err();
        assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    }
    let journal = winners.into_iter().next().unwrap().unwrap();
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
}

#[tokio::test]
async fn a_server_that_was_replaced_cannot_write() {
    let Some(server) = Server::start().await else { return };
    let options = server.options();
    let first = PostgresJournal::open(&options).await.unwrap();
    first.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    // Only the connection with the lock breaks.
    let second = wait_for("the lock is free", async || {
        server.sql("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'");
        PostgresJournal::open(&options).await.ok()
    })
    .await;
    let error = first.append(&id(), Version(1), numbered(2, "first")).await.unwrap_err();
    assert!(matches!(error, JournalError::Storage(_)), "{error}");
    assert!(error.to_string().contains("another Everturn server has taken this database over"), "{error}");
    assert!(first.rename(&id(), "first".to_owned()).await.is_err());
    assert!(first.remove(&id()).await.is_err());
    assert!(first.write("name", "1".to_owned()).await.is_err());
    second.append(&id(), Version(1), numbered(2, "second")).await.unwrap();
    assert_eq!(texts(&second).await, ["one", "second"]);
    assert_eq!(second.load(&id()).await.unwrap().unwrap().head.title, "numbers");
}

#[tokio::test]
async fn a_lost_lock_is_taken_again() {
    let Some(server) = Server::start().await else { return };
    let options = server.options();
    let journal = Arc::new(PostgresJournal::open(&options).await.unwrap());
    let holder = || server.sql("SELECT pid FROM pg_locks WHERE locktype = 'advisory'");
    let before = holder();
    server.sql("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'everturn'");
    let is_held = async || (![before.as_str(), ""].contains(&holder().as_str())).then_some(());
    wait_for("the lock is held again", is_held).await;
    journal.append(&id(), Version(0), numbered(1, "one")).await.unwrap();
    assert!(matches!(PostgresJournal::open(&options).await, Err(OpenError::InUse { .. })));
}
