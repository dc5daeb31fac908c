//! Appends whose answer is lost on the way.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Journal, JournalError, Version};
use everturn_sim::{
    nats::wait_for,
    relay::{Mode, Relay},
};
use everturn_store_postgres::{Options, PostgresJournal};
use tokio::task::JoinHandle;

use crate::support::{Server, id, numbered, texts};

/// A journal behind a relay.
struct Behind {
    server: Server,
    relay: Relay,
    journal: Arc<PostgresJournal>,
}

impl Behind {
    async fn new(give_up_after: Duration) -> Option<Self> {
        let server = Server::start().await?;
        let relay = Relay::to([server.server.address()]).await;
        let options = Options {
            url: server.server.url_at(&relay.address),
            answer_within: Duration::from_secs(2),
            give_up_after,
            ..server.options()
        };
        let journal = Arc::new(PostgresJournal::open(&options).await.unwrap());
        Some(Self { server, relay, journal })
    }

    fn append(&self, expected: Version, number: u64) -> JoinHandle<Result<Version, JournalError>> {
        let journal = self.journal.clone();
        tokio::spawn(async move { journal.append(&id(), expected, numbered(number, "mine")).await })
    }

    /// Waits until the database has this version.
    async fn stored(&self, version: Version) {
        let sql = format!("SELECT 1 FROM conversation WHERE version = {}", version.0);
        wait_for("it is stored", async || (self.server.sql(&sql) == "1").then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_append_that_was_stored_is_told_so_and_stored_once() {
    let Some(behind) = Behind::new(Duration::from_secs(60)).await else { return };
    let version = behind.append(Version(0), 1).await.unwrap().unwrap();
    for number in 2..=4 {
        behind.relay.mode.send_replace(Mode::DropAnswers);
        let answer = behind.append(Version(version.0 + number - 2), number);
        behind.stored(Version(number)).await;
        behind.relay.mode.send_replace(Mode::Relay);
        assert_eq!(answer.await.unwrap(), Ok(Version(number)));
    }
    assert_eq!(texts(&behind.journal).await, ["mine"; 4]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_first_append_is_stored_once() {
    let Some(behind) = Behind::new(Duration::from_secs(60)).await else { return };
    // The connection of the writer is made before answers are lost.
    behind.append(Version(0), 1).await.unwrap().unwrap();
    assert!(behind.journal.remove(&id()).await.unwrap());
    behind.relay.mode.send_replace(Mode::DropAnswers);
    let answer = behind.append(Version(0), 1);
    // Versions of the removed conversation are not used again.
    behind.stored(Version(2)).await;
    behind.relay.mode.send_replace(Mode::Relay);
    assert_eq!(answer.await.unwrap(), Ok(Version(2)));
    assert_eq!(texts(&behind.journal).await, ["mine"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_append_is_not_repeated_after_its_conversation_is_removed() {
    let Some(behind) = Behind::new(Duration::from_secs(60)).await else { return };
    behind.append(Version(0), 1).await.unwrap().unwrap();
    assert!(behind.journal.remove(&id()).await.unwrap());
    behind.relay.mode.send_replace(Mode::DropAnswers);
    let answer = behind.append(Version(0), 1);
    behind.stored(Version(2)).await;
    let journal = behind.journal.clone();
    let removing = tokio::spawn(async move { journal.remove(&id()).await });
    tokio::task::yield_now().await;
    behind.relay.mode.send_replace(Mode::Relay);
    assert_eq!(answer.await.unwrap(), Ok(Version(2)));
    assert_eq!(removing.await.unwrap(), Ok(true));
    assert!(behind.journal.load(&id()).await.unwrap().is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_gives_up_says_that_it_does_not_know() {
    let Some(behind) = Behind::new(Duration::from_millis(100)).await else { return };
    behind.append(Version(0), 1).await.unwrap().unwrap();
    behind.relay.mode.send_replace(Mode::DropAnswers);
    let error = behind.append(Version(1), 2).await.unwrap().unwrap_err();
    assert!(matches!(error, JournalError::Unknown(_)), "{error}");
    let text = error.to_string();
    assert!(text.contains("Postgres database postgres at 127.0.0.1:"), "{text}");
    assert!(text.contains("schema journal_1: no answer for"), "{text}");
    let error = behind.journal.load(&id()).await.unwrap_err();
    assert!(matches!(error, JournalError::Storage(_)), "{error}");
    behind.relay.mode.send_replace(Mode::Relay);
    assert_eq!(texts(&behind.journal).await.len(), 2, "it had been stored");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refused_connection_wrote_nothing() {
    let Some(mut behind) = Behind::new(Duration::from_millis(100)).await else { return };
    behind.append(Version(0), 1).await.unwrap().unwrap();
    behind.server.server.kill();
    // The first append finds its connection lost, and so does not know; the next one finds none.
    let _ = behind.append(Version(1), 2).await.unwrap().unwrap_err();
    let error = behind.append(Version(1), 2).await.unwrap().unwrap_err();
    assert!(matches!(error, JournalError::Storage(_)), "{error}");
    behind.server.server.restart().await;
    let version = behind.journal.load(&id()).await.unwrap().unwrap().version;
    assert_eq!(version, Version(1));
}
