//! What a node reads while others write, and from a server of the journal that is behind.

use std::sync::Mutex;

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Head, Journal, JournalError, Page, Stored, StoredEvent, Unsealed, Version, Window,
    kernel::{Millis, Request},
};
use everturn_wire::{Chunk, ConversationId, Message, StoredChunk, TurnMetrics};

use super::*;

/// A node's way to the journal, which can be behind it.
struct Replica {
    journal: Arc<dyn Journal>,
    /// How long the next reading of chunks takes.
    delay: Mutex<Option<Duration>>,
    /// What it has until then, for readings of one conversation.
    behind: Mutex<Option<(Stored, Instant)>>,
}

impl Replica {
    fn of(nodes: &Nodes, name: &str) -> Arc<Self> {
        Arc::new(Self { journal: nodes.log.node(name).0, delay: Mutex::default(), behind: Mutex::default() })
    }

    /// Learns of nothing that is appended from now on, for this long.
    async fn fall_behind(&self, id: &ConversationId, time: Duration) {
        let stored = self.journal.load(id).await.unwrap().unwrap();
        *self.behind.lock().unwrap() = Some((stored, Instant::now() + time));
    }

    fn behind(&self) -> Option<Stored> {
        let behind = self.behind.lock().unwrap();
        behind.as_ref().filter(|(_, until)| Instant::now() < *until).map(|(stored, _)| stored.clone())
    }
}

#[async_trait]
impl Journal for Replica {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        self.journal.append(id, expected, commit).await
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        match self.behind() {
            Some(stored) => Ok(Some(stored)),
            None => self.journal.load(id).await,
        }
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        let delay = self.delay.lock().unwrap().take();
        if let Some(delay) = delay {
            sleep(delay).await;
        }
        let mut chunks = self.journal.chunks(id, window).await?;
        if let Some(stored) = self.behind() {
            chunks.retain(|chunk| chunk.seq <= stored.head.last_seq);
        }
        Ok(chunks)
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        let mut events = self.journal.events(id, after, limit).await?;
        if let Some(stored) = self.behind() {
            events.retain(|event| event.end <= stored.head.end);
        }
        Ok(events)
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.journal.metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.journal.conversations(page).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.journal.unsealed(before).await
    }
}

/// The texts of a request.
fn said(request: &Request) -> Vec<&str> {
    let chunks = request.messages.iter().flat_map(Message::iter);
    let texts = chunks.filter_map(|chunk| match chunk {
        Chunk::Text { text } => Some(text.as_str()),
        _ => None,
    });
    texts.collect()
}

#[tokio::test(start_paused = true)]
async fn an_append_between_two_readings_is_taken_in_once() {
    let nodes = Nodes::new();
    let (a, _) = nodes.node("a", [slow(&["one"])]).await;
    let replica = Replica::of(&nodes, "b");
    let (b, at_b) = nodes.node_with("b", [answer("two")], |builder| builder.journal(replica.clone())).await;
    let started = a.start("hi").await.unwrap();
    // The head is read before the answer is saved, and the chunks after that.
    *replica.delay.lock().unwrap() = Some(Duration::from_secs(5));
    let mut watcher = b.watch(Some(started.from)).await;
    told(&mut watcher).await;
    b.say("and").await.turn().await;
    assert_eq!(said(&at_b.requests()[0]), ["hi", "one", "and"]);
    assert_eq!(b.history().await, ["text hi", "text one", "text and", "text two"]);
}

#[tokio::test(start_paused = true)]
async fn a_conversation_that_was_begun_again_has_nothing_of_the_one_before() {
    let nodes = Nodes::noisy(Noise { lost: 1.0, ..Noise::default() });
    let calls = ["one", "new", "newer"].map(answer);
    let (a, _) = nodes.node("a", calls).await;
    let (b, at_b) = nodes.node("b", [answer("newest")]).await;
    a.say("hi").await.turn().await;
    let _follows = b.watch(None).await;
    assert!(!a.orchestrator.delete(&a.id).await.unwrap());
    sleep(Duration::from_millis(1)).await;
    a.say("anew").await.turn().await;
    a.say("more").await.turn().await;
    // It has heard of nothing, and looks.
    sleep(Duration::from_secs(60)).await;
    b.say("and").await.turn().await;
    assert_eq!(said(&at_b.requests()[0]), ["anew", "new", "more", "newer", "and"]);
}

#[tokio::test(start_paused = true)]
async fn what_comes_after_a_gap_is_not_added_to_a_deleted_history_of_the_same_length() {
    let nodes = Nodes::new();
    // The failure makes the new conversation's version another one than that of the deleted conversation.
    let calls = [answer("one"), overloaded_with_hint(1_000), answer("new"), answer("newer")];
    let (a, _) = nodes.node("a", calls).await;
    let (b, at_b) = nodes.node("b", [answer("newest")]).await;
    a.say("hi").await.turn().await;
    let _follows = b.watch(None).await;
    // It has looked once, and looks again in 30 s.
    sleep(Duration::from_secs(2)).await;
    nodes.log.disturb(Noise { lost: 1.0, ..Noise::default() });
    assert!(!a.orchestrator.delete(&a.id).await.unwrap());
    a.say("anew").await.turn().await;
    nodes.log.calm();
    a.say("more").await.turn().await;
    b.say("and").await.turn().await;
    assert_eq!(said(&at_b.requests()[0]), ["anew", "new", "more", "newer", "and"]);
}

/// A long turn of one node that another one hears of, while its way to the journal is behind for that long: so it cannot read
/// what it no longer holds. Returns what a slow watcher there is told.
async fn told_behind(time: Duration) -> Result<String, Error> {
    let nodes = Nodes::new();
    let long = "word ".repeat(60_000);
    let (a, _) = nodes.node("a", [vec![text(&long), pause(1_000), text("end"), finish()]]).await;
    let replica = Replica::of(&nodes, "b");
    let (b, _) = nodes.node_with("b", [vec![]], |builder| builder.journal(replica.clone())).await;
    let started = a.start("hi").await.unwrap();
    let mut watcher = b.watch(Some(started.from)).await;
    replica.fall_behind(&b.id, time).await;
    // It takes nothing until the turn is over.
    let mut at_a = a.watch(Some(started.from)).await;
    told(&mut at_a).await;
    let mut told = String::new();
    loop {
        let frame = watcher.subscription.next().await?;
        if let Some(text) = lines([&frame])[0].strip_prefix("text-delta ") {
            told += text;
        }
        if frame.ends_turn() {
            assert_eq!(told, long + "end");
            return Ok(told);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_waits_for_a_journal_that_is_behind_and_misses_nothing() {
    told_behind(Duration::from_secs(5)).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_watcher_is_told_that_the_journal_stays_behind() {
    let error = told_behind(Duration::from_secs(600)).await.unwrap_err().to_string();
    assert!(error.contains("it lacks events of conversation c that were published"), "{error}");
}
