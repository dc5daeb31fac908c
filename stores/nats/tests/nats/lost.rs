//! Appends whose answer is lost on the way.

use std::{pin::pin, sync::Arc, time::Duration};

use everturn_orchestrator::{Cursor, Journal, JournalError, Version};
use everturn_sim::{
    nats::wait_for,
    relay::{Mode, Relay},
};
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::ConversationId;
use futures_util::{
    StreamExt as _,
    future::{Either, select},
};
use tokio::task::JoinHandle;

use crate::{
    relay::relay,
    support::{Server, numbered},
};

/// A writer behind a relay, and another that has none.
struct Two {
    behind: Arc<NatsJournal>,
    relay: Relay,
    other: NatsJournal,
    _server: Server,
}

impl Two {
    async fn new() -> Option<Self> {
        let server = Server::start("").await?;
        let direct = server.options();
        let (relay, url) = relay([server.server.url()]).await;
        let mut options = Options::new([url]);
        options.prefix.clone_from(&direct.prefix);
        options.answer_within = Duration::from_millis(300);
        options.give_up_after = Duration::from_secs(60);
        let other = NatsJournal::connect(&direct).await.unwrap();
        let behind = Arc::new(NatsJournal::connect(&options).await.unwrap());
        Some(Self { behind, relay, other, _server: server })
    }

    /// Begins an append at this version in this mode.
    async fn append(
        &self,
        mode: Mode,
        expected: Version,
        number: u64,
    ) -> JoinHandle<Result<Version, JournalError>> {
        // Otherwise it would read the append that it follows, which needs answers, too.
        self.behind.load(&id()).await.unwrap();
        self.relay.mode.send_replace(mode);
        let behind = self.behind.clone();
        tokio::spawn(async move { behind.append(&id(), expected, numbered(number, "mine")).await })
    }

    /// Returns the version after this one, as soon as there is one.
    async fn after(&self, version: Version) -> Version {
        wait_for("it is stored", async || {
            let stored = self.other.load(&id()).await.unwrap();
            stored.map(|stored| stored.version).filter(|stored| *stored > version)
        })
        .await
    }

    async fn texts(&self) -> Vec<String> {
        let events = self.other.events(&id(), Cursor::default(), 99).await.unwrap();
        events.iter().map(|event| String::from_utf8(event.json.to_vec()).unwrap()).collect()
    }
}

fn id() -> ConversationId {
    "c".into()
}

#[tokio::test]
async fn an_append_that_was_stored_is_told_so() {
    let Some(two) = Two::new().await else { return };
    let mut version = Version(0);
    for number in 1..=3 {
        let answer = two.append(Mode::DropAnswers, version, number).await;
        let stored = two.after(version).await;
        two.relay.mode.send_replace(Mode::Relay);
        assert_eq!(answer.await.unwrap(), Ok(stored));
        version = stored;
    }
    assert_eq!(two.texts().await, ["mine"; 3]);
    assert!(two.behind.lost_answers() > 0);
}

#[tokio::test]
async fn an_append_that_was_stored_is_told_so_even_if_others_followed() {
    let Some(two) = Two::new().await else { return };
    let mut version = Version(0);
    for number in [1, 3] {
        let answer = two.append(Mode::DropAnswers, version, number).await;
        let stored = two.after(version).await;
        version = two.other.append(&id(), stored, numbered(number + 1, "other")).await.unwrap();
        two.relay.mode.send_replace(Mode::Relay);
        assert_eq!(answer.await.unwrap(), Ok(stored));
    }
    assert_eq!(two.texts().await, ["mine", "other", "mine", "other"]);
}

#[tokio::test]
async fn an_append_that_another_overtook_is_stale() {
    let Some(two) = Two::new().await else { return };
    let mut version = Version(0);
    for number in 1..=2 {
        let answer = two.append(Mode::DropAll, version, number).await;
        wait_for("an answer is lost", async || (two.behind.lost_answers() >= number).then_some(())).await;
        let found = two.other.append(&id(), version, numbered(number, "other")).await.unwrap();
        two.relay.mode.send_replace(Mode::Relay);
        let stale = JournalError::Stale { id: id(), expected: version, found };
        assert_eq!(answer.await.unwrap(), Err(stale));
        version = found;
    }
    assert_eq!(two.texts().await, ["other"; 2]);
}

#[tokio::test]
async fn a_lost_append_is_stored_once() {
    let Some(two) = Two::new().await else { return };
    let answer = two.append(Mode::DropAll, Version(0), 1).await;
    wait_for("an answer is lost", async || (two.behind.lost_answers() > 0).then_some(())).await;
    two.relay.mode.send_replace(Mode::Relay);
    assert_eq!(answer.await.unwrap(), Ok(two.after(Version(0)).await));
    assert_eq!(two.texts().await, ["mine"]);
}

#[tokio::test]
async fn an_append_that_was_stored_and_removed_does_not_come_back() {
    let Some(two) = Two::new().await else { return };
    for number in 1..=2 {
        let mut version = Version(0);
        if number == 2 {
            version = two.other.append(&id(), version, numbered(1, "other")).await.unwrap();
        }
        let answer = two.append(Mode::DropAnswers, version, number).await;
        two.after(version).await;
        assert!(two.other.remove(&id()).await.unwrap());
        two.relay.mode.send_replace(Mode::Relay);
        // Whoever read it meanwhile knows that it was stored, so it was not refused.
        let error = answer.await.unwrap().unwrap_err();
        assert!(matches!(error, JournalError::Unknown(_)), "{error}");
        assert!(error.to_string().contains("removed meanwhile"), "{error}");
        assert_eq!(two.texts().await, [""; 0]);
    }
}

#[tokio::test]
async fn whoever_gives_up_says_that_it_does_not_know() {
    let Some(server) = Server::start("").await else { return };
    let (relay, url) = relay([server.server.url()]).await;
    let mut options = Options::new([url]);
    options.answer_within = Duration::from_millis(100);
    options.give_up_after = Duration::from_millis(500);
    let journal = NatsJournal::connect(&options).await.unwrap();
    relay.mode.send_replace(Mode::DropAnswers);
    let error = journal.append(&id(), Version(0), numbered(1, "text")).await.unwrap_err();
    assert!(matches!(error, JournalError::Unknown(_)), "{error}");
    assert!(error.to_string().contains("stream EV at 127.0.0.1:"), "{error}");
    let error = journal.load(&id()).await.unwrap_err();
    assert!(matches!(error, JournalError::Storage(_)), "{error}");
}

#[tokio::test]
async fn a_server_that_lacks_the_expected_append_decides_nothing() {
    let Some(server) = Server::start("").await else { return };
    let mut options = server.options();
    options.give_up_after = Duration::from_millis(500);
    let journal = NatsJournal::connect(&options).await.unwrap();
    let first = journal.append(&id(), Version(0), numbered(1, "first")).await.unwrap();
    let second = journal.append(&id(), first, numbered(2, "second")).await.unwrap();
    // As a leader answers that was frozen before the second append, and has just been thawed.
    let stream = async_nats::jetstream::new(journal.client().clone()).get_stream("T1").await.unwrap();
    stream.delete_message(second.0).await.unwrap();
    let error = journal.append(&id(), second, numbered(3, "third")).await.unwrap_err();
    assert!(matches!(error, JournalError::Unknown(_)), "{error}");
    assert!(error.to_string().contains("older than what was stored"), "{error}");
}

/// Both the leader and one that was replaced and has not noticed may get an append. If the second answers first, the append may
/// be stored.
#[tokio::test]
async fn a_conflict_without_a_cause_decides_nothing() {
    let Some(server) = Server::start("").await else { return };
    let mut options = server.options();
    options.give_up_after = Duration::from_millis(500);
    let journal = NatsJournal::connect(&options).await.unwrap();
    let first = journal.append(&id(), Version(0), numbered(1, "first")).await.unwrap();
    let context = async_nats::jetstream::new(journal.client().clone());
    let mut config = context.get_stream("T1").await.unwrap().cached_info().config.clone();
    let subjects = std::mem::replace(&mut config.subjects, vec!["elsewhere".to_owned()]);
    context.update_stream(config).await.unwrap();
    // Answers as a replaced leader that still waits for the others.
    for subject in subjects {
        let mut sent = journal.client().subscribe(subject).await.unwrap();
        let client = journal.client().clone();
        tokio::spawn(async move {
            while let Some(message) = sent.next().await {
                let conflict =
                    r#"{"error":{"code":400,"err_code":10164,"description":"wrong last sequence"}}"#;
                client.publish(message.reply.unwrap(), conflict.into()).await.unwrap();
            }
        });
    }
    let error = journal.append(&id(), first, numbered(2, "second")).await.unwrap_err();
    assert!(matches!(error, JournalError::Unknown(_)), "{error}");
    assert!(error.to_string().contains("other appends are in progress"), "{error}");
}

/// A leader that was replaced may still have the conversation that was removed.
#[tokio::test]
async fn a_server_that_lacks_the_removal_does_not_refuse_the_next_beginning() {
    let Some(server) = Server::start("").await else { return };
    let mut options = server.options();
    options.give_up_after = Duration::from_millis(500);
    let journal = NatsJournal::connect(&options).await.unwrap();
    let first = journal.append(&id(), Version(0), numbered(1, "first")).await.unwrap();
    let context = async_nats::jetstream::new(journal.client().clone());
    let stream = context.get_stream("T1").await.unwrap();
    let message = stream.get_raw_message(first.0).await.unwrap();
    // The removal by another process, before it deletes anything.
    let mut headers = async_nats::HeaderMap::new();
    for name in ["Ev-V", "Ev-Born", "Ev-Seq", "Ev-End", "Ev-Marks", "Ev-Sealed"] {
        headers.insert(name, message.headers.get(name).unwrap().clone());
    }
    for (name, value) in [("Ev-Id", "other-1"), ("Ev-Number", "2"), ("Ev-Turn", "removed")] {
        headers.insert(name, value);
    }
    let mark = context.publish_with_headers(message.subject, headers, "".into()).await.unwrap();
    let mark = mark.await.unwrap().sequence;
    assert!(journal.load(&id()).await.unwrap().is_none());
    stream.delete_message(mark).await.unwrap();
    let error = journal.append(&id(), Version(0), numbered(1, "again")).await.unwrap_err();
    assert!(matches!(error, JournalError::Unknown(_)), "{error}");
    assert!(error.to_string().contains("older than what was stored"), "{error}");
}

/// What a refusal told is not forgotten: a leader that was replaced is asked again.
#[tokio::test]
async fn a_reading_after_a_refusal_is_not_older() {
    let Some(server) = Server::start("").await else { return };
    let options = server.options();
    let journal = async || NatsJournal::connect(&options).await.unwrap();
    let (journal, other, another) = (journal().await, journal().await, journal().await);
    let first = journal.append(&id(), Version(0), numbered(1, "first")).await.unwrap();
    let second = other.append(&id(), first, numbered(2, "second")).await.unwrap();
    let refused = journal.append(&id(), first, numbered(2, "late")).await;
    assert_eq!(refused, Err(JournalError::Stale { id: id(), expected: first, found: second }));
    // As a leader answers that was replaced before the second append, and then one that knows a third.
    let stream = async_nats::jetstream::new(journal.client().clone()).get_stream("T1").await.unwrap();
    stream.delete_message(second.0).await.unwrap();
    let id = id();
    let mut loading = pin!(journal.load(&id));
    let third = match select(&mut loading, another.append(&id, first, numbered(2, "third"))).await {
        Either::Left((loaded, _)) => panic!("it loads {loaded:?}"),
        Either::Right((third, _)) => third.unwrap(),
    };
    assert_eq!(loading.await.unwrap().unwrap().version, third);
}
