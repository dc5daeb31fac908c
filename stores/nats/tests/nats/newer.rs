//! What a newer version writes: additions are ignored, and what this version cannot read is refused, without harm.

use async_nats::{HeaderMap, jetstream};
use everturn_orchestrator::{
    Commit, Cursor, Journal as _, JournalError, LiveEvent, NodeId, Page, Version, Window, kernel::Millis,
};
use everturn_store_nats::NatsJournal;
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use crate::support::{Server, numbered, turn};

/// A journal, and a hand that writes to its stream as a newer version would.
struct Newer {
    journal: NatsJournal,
    stream: jetstream::Context,
    _server: Server,
}

impl Newer {
    async fn new() -> Option<Self> {
        let server = Server::start("").await?;
        let journal = NatsJournal::connect(&server.options()).await.unwrap();
        let stream = jetstream::new(journal.client().clone());
        Some(Self { journal, stream, _server: server })
    }

    /// Writes another append to a conversation, in a newer format, whatever it contains.
    async fn write_next(&self, id: &ConversationId, after: Version) -> Version {
        let mut headers = HeaderMap::new();
        newer_format(&mut headers);
        headers.insert("Ev-Id", "newer-1");
        headers.insert("Nats-Expected-Last-Subject-Sequence", after.0.to_string());
        let subject = self.journal.names().appends(id);
        let stored = self.stream.publish_with_headers(subject, headers, "?".into()).await.unwrap();
        Version(stored.await.unwrap().sequence)
    }

    /// Writes the first append of a conversation, with an unsealed turn, changed by `change`: its headers, and the first line
    /// of its content.
    async fn write(&self, id: &str, change: impl FnOnce(&mut HeaderMap, &mut Value)) -> Version {
        let (model, id) = (ConversationId::from("model"), ConversationId::from(id));
        let commit = Commit { turn: Some(Box::new(turn())), ..numbered(1, "text") };
        let version = self.journal.append(&model, Version(0), commit).await.unwrap();
        let stream = self.stream.get_stream(self.journal.names().stream()).await.unwrap();
        let message = stream.get_raw_message(version.0).await.unwrap();
        assert!(self.journal.remove(&model).await.unwrap());

        let mut headers = message.headers;
        headers.insert("Ev-Id", "newer-0");
        headers.insert("Ev-Born", "newer-0");
        headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
        let at = message.payload.iter().position(|byte| *byte == b'\n').unwrap();
        let mut line: Value = serde_json::from_slice(&message.payload[..at]).unwrap();
        change(&mut headers, &mut line);
        let content = [line.to_string().as_bytes(), &message.payload[at..]].concat();
        let subject = self.journal.names().appends(&id);
        let stored = self.stream.publish_with_headers(subject, headers, content.into()).await.unwrap();
        Version(stored.await.unwrap().sequence)
    }
}

fn newer_format(headers: &mut HeaderMap) {
    headers.insert("Ev-V", "2");
}

/// The headers that the first version refuses to go without: servers can be replaced by those of that version.
const SINCE_THE_FIRST_VERSION: [&str; 11] = [
    "Ev-V",
    "Ev-Id",
    "Ev-Born",
    "Ev-Number",
    "Ev-Head",
    "Ev-At",
    "Ev-Turn",
    "Ev-Seq",
    "Ev-End",
    "Ev-Marks",
    "Ev-Sealed",
];

#[tokio::test]
async fn an_append_has_all_headers_that_the_first_version_needs() {
    let Some(newer) = Newer::new().await else { return };
    let version = newer.journal.append(&"c".into(), Version(0), numbered(1, "text")).await.unwrap();
    let stream = newer.stream.get_stream(newer.journal.names().stream()).await.unwrap();
    let headers = stream.get_raw_message(version.0).await.unwrap().headers;
    let missing = SINCE_THE_FIRST_VERSION.into_iter().filter(|name| headers.get(*name).is_none());
    assert_eq!(missing.collect::<Vec<_>>(), [""; 0]);
}

#[tokio::test]
async fn what_a_newer_version_adds_is_ignored() {
    let Some(newer) = Newer::new().await else { return };
    let version = newer
        .write("c", |headers, line| {
            headers.insert("Ev-Newer", "1");
            let mut head: Value = serde_json::from_str(headers.get("Ev-Head").unwrap().as_str()).unwrap();
            (head["newer"], head["status"]) = (json!([1]), json!("dreaming"));
            headers.insert("Ev-Head", head.to_string());
            line["newer"] = json!({ "a": 1 });
            for place in
                ["/turn", "/turn/snapshot", "/turn/snapshot/settings", "/turn/definition", "/chunks/0"]
            {
                line.pointer_mut(place).unwrap()["newer"] = json!({ "a": 1 });
            }
        })
        .await;
    let (journal, id) = (&newer.journal, ConversationId::from("c"));
    let stored = journal.load(&id).await.unwrap().unwrap();
    assert_eq!((stored.version, stored.turn.unwrap()), (version, turn()));
    assert_eq!(stored.owner, Some(NodeId::from("newer")));
    assert_eq!(journal.chunks(&id, Window::default()).await.unwrap().len(), 1);
    assert_eq!(journal.events(&id, Cursor::default(), 9).await.unwrap().len(), 1);
    assert_eq!(journal.unsealed(Millis(u64::MAX)).await.unwrap().len(), 1);
    // This version goes on with it.
    let next = journal.append(&id, version, numbered(2, "more")).await.unwrap();
    assert_eq!(journal.load(&id).await.unwrap().unwrap().version, next);
    assert_eq!(journal.events(&id, Cursor::default(), 9).await.unwrap().len(), 2);
}

#[tokio::test]
async fn a_conversation_in_a_newer_format_is_refused_and_left_as_it_is() {
    let Some(newer) = Newer::new().await else { return };
    let (journal, id) = (&newer.journal, ConversationId::from("c"));
    let version = newer.write("c", |headers, _| newer_format(headers)).await;
    let is_refused = |error: JournalError| {
        let text = error.to_string();
        assert!(text.contains("conversation c "), "{text}");
        assert!(text.contains("written by a newer version of Everturn (format 2"), "{text}");
        assert!(text.contains("upgrade Everturn"), "{text}");
        assert!(!text.contains("damaged") && !text.contains("backup"), "{text}");
    };
    is_refused(journal.load(&id).await.unwrap_err());
    is_refused(journal.chunks(&id, Window::default()).await.unwrap_err());
    is_refused(journal.append(&id, version, numbered(2, "more")).await.unwrap_err());
    is_refused(journal.append(&id, Version(0), numbered(1, "new")).await.unwrap_err());
    is_refused(journal.remove(&id).await.unwrap_err());
    let stream = newer.stream.get_stream(journal.names().stream()).await.unwrap();
    let last = stream.get_last_raw_message_by_subject(&journal.names().appends(&id)).await.unwrap();
    assert_eq!(last.sequence, version.0, "nothing was written");
}

#[tokio::test]
async fn a_newer_version_that_takes_a_turn_over_makes_this_one_stale() {
    let Some(newer) = Newer::new().await else { return };
    let (journal, id) = (&newer.journal, ConversationId::from("c"));
    let expected = journal.append(&id, Version(0), numbered(1, "text")).await.unwrap();
    let found = newer.write_next(&id, expected).await;
    let stale = journal.append(&id, expected, numbered(2, "more")).await;
    assert_eq!(stale, Err(JournalError::Stale { id, expected, found }));
}

#[tokio::test]
async fn a_conversation_in_a_newer_format_keeps_no_other_from_being_found() {
    let Some(newer) = Newer::new().await else { return };
    let journal = &newer.journal;
    newer.write("a", |headers, _| newer_format(headers)).await;
    newer.write("b", |_, _| {}).await;
    newer.write("c", |headers, _| headers.insert("Ev-Turn", "dreams")).await;
    let unsealed = journal.unsealed(Millis(u64::MAX)).await.unwrap();
    assert_eq!(unsealed.iter().map(|turn| turn.id.as_str()).collect::<Vec<_>>(), ["b"]);
    let listed = journal.conversations(Page::default()).await.unwrap();
    assert_eq!(listed.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(journal.drop_ephemeral(Millis(u64::MAX)).await.unwrap(), []);
}

#[tokio::test]
async fn a_live_append_in_a_newer_format_makes_followers_read_the_journal() {
    let Some(newer) = Newer::new().await else { return };
    let cluster = newer.journal.cluster("this").await.unwrap();
    let mut live = cluster.live.follow(&"c".into()).await.unwrap();
    newer.write("c", |headers, _| newer_format(headers)).await;
    assert!(matches!(live.next().await, Some(LiveEvent::Missed)));
}
