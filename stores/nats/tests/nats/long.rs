//! Long conversations: any place is found, and a missing append is noticed.

use everturn_orchestrator::{Cursor, Journal, Take, Version, Window};
use everturn_store_nats::NatsJournal;
use everturn_wire::ConversationId;

use crate::support::{Server, numbered};

const LENGTH: u64 = 700;

/// Writes a conversation of [`LENGTH`] appends, between those of others.
async fn write(journal: &NatsJournal, id: &ConversationId) -> Vec<Version> {
    let (mut versions, mut version, mut other) = (Vec::new(), Version(0), Version(0));
    for number in 1..=LENGTH {
        version = journal.append(id, version, numbered(number, &format!("text {number}"))).await.unwrap();
        versions.push(version);
        if number % 3 == 0 {
            other = journal.append(&"other".into(), other, numbered(number, "other")).await.unwrap();
        }
    }
    versions
}

#[tokio::test]
async fn any_place_in_a_long_conversation_is_found() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.options(), "long".into());
    let journal = NatsJournal::connect(&options).await.unwrap();
    write(&journal, &id).await;
    let reader = NatsJournal::connect(&options).await.unwrap();
    for after in (0..LENGTH).step_by(37).chain([1, LENGTH - 1, LENGTH, LENGTH + 1]) {
        for limit in [1, 10, 300, usize::MAX] {
            let events = reader.events(&id, Cursor::from_value(after), limit).await.unwrap();
            let ends: Vec<u64> = events.iter().map(|event| event.end.value()).collect();
            assert_eq!(ends, (after + 1..=LENGTH).take(limit).collect::<Vec<_>>());
        }
        let window = Window { before_seq: Some(after + 1), limit: Some(20), ..Window::default() };
        let seqs = async |window| {
            let chunks = reader.chunks(&id, window).await.unwrap();
            chunks.iter().map(|chunk| chunk.seq).collect::<Vec<_>>()
        };
        let end = after.min(LENGTH);
        assert_eq!(seqs(window).await, (end.saturating_sub(20) + 1..=end).collect::<Vec<_>>());
        let window =
            Window { since_seq: Some(after), limit: Some(20), take: Take::Oldest, ..Window::default() };
        assert_eq!(seqs(window).await, (after + 1..=LENGTH).take(20).collect::<Vec<_>>());
        // `{"type":"text","text":"text 123"}`
        let window = Window { before_seq: Some(after + 1), max_bytes: Some(33 * 100), ..Window::default() };
        let newest = seqs(window).await;
        assert!(newest.len() as u64 >= end.min(100) && newest.len() <= 103, "{}", newest.len());
        assert_eq!(newest.last().copied(), Some(end).filter(|end| *end > 0));
    }
}

#[tokio::test]
async fn a_missing_append_is_noticed() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.options(), "long".into());
    let journal = NatsJournal::connect(&options).await.unwrap();
    let versions = write(&journal, &id).await;
    let stream = async_nats::jetstream::new(journal.client().clone()).get_stream("T1").await.unwrap();
    stream.delete_message(versions[300].0).await.unwrap();
    let error = journal.events(&id, Cursor::default(), usize::MAX).await.unwrap_err().to_string();
    assert!(error.contains("conversation long is damaged: append 302"), "{error}");
    assert!(error.contains("does not follow append 300"), "{error}");
    assert!(error.contains("restore the stream from a backup"), "{error}");
    assert!(journal.load(&id).await.is_ok(), "the end is whole");
    let newest = Window { limit: Some(20), ..Window::default() };
    assert_eq!(journal.chunks(&id, newest).await.unwrap().len(), 20);
    stream.delete_message(versions[698].0).await.unwrap();
    let error = journal.load(&id).await.unwrap_err().to_string();
    assert!(error.contains("conversation long is damaged: append 700"), "{error}");
}

#[tokio::test]
async fn what_a_newer_version_wrote_is_refused() {
    let Some(server) = Server::start("").await else { return };
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    let context = async_nats::jetstream::new(journal.client().clone());
    let mut headers = async_nats::HeaderMap::new();
    headers.insert("Ev-V", "2");
    context.publish_with_headers("t1.c.c", headers, "?".into()).await.unwrap().await.unwrap();
    let error = journal.load(&"c".into()).await.unwrap_err().to_string();
    assert!(error.contains("written by a newer version of Everturn (format 2"), "{error}");
}
