//! Appends that are larger than a message.

use std::time::Duration;

use everturn_orchestrator::{Cursor, Journal, JournalError, Version, Window};
use everturn_store_nats::NatsJournal;
use everturn_wire::{Chunk, Role, StoredChunk};

use crate::support::{Server, head, numbered};

/// Returns a commit with an image of this many bytes.
pub(crate) fn image(bytes: usize) -> everturn_orchestrator::Commit {
    // Not the same everywhere, so that parts in another order are noticed.
    let data: String = (0_u32..).flat_map(|n| char::from_digit(n % 7919 % 36, 36)).take(bytes).collect();
    let url = format!("data:image/png;base64,{data}");
    let chunk = StoredChunk {
        seq: 1,
        role: Role::User,
        chunk: Chunk::Image { url, mime_type: None }.into(),
        supersedes: None,
    };
    everturn_orchestrator::Commit {
        chunks: vec![chunk.into()],
        ..everturn_orchestrator::Commit::new(head(1))
    }
}

#[tokio::test]
async fn a_large_append_comes_back_whole_also_to_another_process() {
    let Some(server) = Server::start("").await else { return };
    let (options, id) = (server.options(), "large".into());
    let journal = NatsJournal::connect(&options).await.unwrap();
    let given = image(17 << 20);
    let version = journal.append(&id, Version(0), given.clone()).await.unwrap();
    let version = journal.append(&id, version, numbered(2, "small")).await.unwrap();
    let other = NatsJournal::connect(&options).await.unwrap();
    let chunks = other.chunks(&id, Window::default()).await.unwrap();
    assert!(chunks.len() == 2 && chunks[0] == given.chunks[0], "an image of 17 MiB");
    assert_eq!(other.events(&id, Cursor::default(), 9).await.unwrap(), numbered(2, "small").events);
    assert_eq!(other.sweep(Duration::ZERO).await.unwrap(), 0, "its parts are no garbage");
    // Nobody needs its parts after it is removed.
    assert_eq!(journal.load(&id).await.unwrap().unwrap().version, version);
    assert!(journal.remove(&id).await.unwrap());
    assert_eq!(parts(&server, &journal).await, 0);
}

#[tokio::test]
async fn what_is_larger_than_the_limit_is_refused_for_good() {
    let Some(server) = Server::start("").await else { return };
    let mut options = server.options();
    options.max_append = 1 << 20;
    let journal = NatsJournal::connect(&options).await.unwrap();
    let refused = journal.append(&"c".into(), Version(0), image(1 << 20)).await.unwrap_err();
    assert!(matches!(refused, JournalError::TooLarge { limit: 1_048_576, .. }), "{refused}");
    assert!(journal.load(&"c".into()).await.unwrap().is_none());
}

#[tokio::test]
async fn a_server_that_takes_small_messages_gets_small_parts() {
    let Some(server) = Server::start("max_payload: 100KB").await else { return };
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    let given = image(300_000);
    journal.append(&"c".into(), Version(0), given.clone()).await.unwrap();
    assert_eq!(journal.chunks(&"c".into(), Window::default()).await.unwrap(), given.chunks);
}

#[tokio::test]
async fn parts_of_a_refused_append_are_deleted() {
    let Some(server) = Server::start("").await else { return };
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    journal.append(&"c".into(), Version(0), numbered(1, "first")).await.unwrap();
    let refused = journal.append(&"c".into(), Version(0), image(2 << 20)).await;
    assert!(matches!(refused, Err(JournalError::Stale { .. })), "{refused:?}");
    assert_eq!(parts(&server, &journal).await, 0);
}

#[tokio::test]
async fn parts_that_no_append_names_are_swept() {
    let Some(server) = Server::start("").await else { return };
    let journal = NatsJournal::connect(&server.options()).await.unwrap();
    let version = journal.append(&"c".into(), Version(0), image(2 << 20)).await.unwrap();
    let named = parts(&server, &journal).await;
    // A writer that ends after two parts.
    let context = async_nats::jetstream::new(journal.client().clone());
    for (part, after) in [("c.gone-7.0", version.0), ("c.gone-7.1", version.0), ("none.gone-8.0", 0)] {
        let mut headers = async_nats::HeaderMap::new();
        headers.insert("Ev-After", after.to_string());
        let subject = format!("t1.b.{part}");
        context.publish_with_headers(subject, headers, "part".into()).await.unwrap().await.unwrap();
    }
    assert_eq!(parts(&server, &journal).await, named + 3);
    assert_eq!(journal.sweep(Duration::from_secs(3600)).await.unwrap(), 0, "they are not old");
    assert_eq!(journal.sweep(Duration::ZERO).await.unwrap(), 2);
    assert_eq!(parts(&server, &journal).await, named);
    assert_eq!(journal.chunks(&"c".into(), Window::default()).await.unwrap().len(), 1);
}

/// Returns the number of messages in the stream that are parts.
async fn parts(server: &Server, journal: &NatsJournal) -> usize {
    server.subjects(journal, "b.>").await.values().sum()
}
