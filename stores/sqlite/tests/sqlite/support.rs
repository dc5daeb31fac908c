//! Conversations whose every append can be told from the others.

use bytes::Bytes;
use everturn_orchestrator::{Commit, Cursor, Journal, JournalError, StoredEvent, Version, Window};
pub(crate) use everturn_sim::numbered::head;
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::{Chunk, ConversationId, Role, StoredChunk};

pub(crate) fn event(number: u64) -> StoredEvent {
    StoredEvent {
        start: Cursor::from_value(number - 1),
        end: Cursor::from_value(number),
        json: Bytes::from(number.to_string()),
    }
}

/// What the append that leads to version `number` adds.
pub(crate) fn numbered(number: u64, text: String) -> Commit {
    let chunk =
        StoredChunk { seq: number, role: Role::User, chunk: Chunk::Text { text }.into(), supersedes: None };
    Commit::new(head(number)).chunk(chunk).event(event(number))
}

pub(crate) async fn append(
    journal: &SqliteJournal,
    id: &ConversationId,
    number: u64,
) -> Result<Version, JournalError> {
    journal.append(id, Version(number - 1), numbered(number, number.to_string())).await
}

pub(crate) async fn version(journal: &SqliteJournal, id: &ConversationId) -> u64 {
    journal.load(id).await.unwrap().map_or(0, |stored| stored.version.0)
}

/// The version, after checking that every append up to it is there, whole, and nothing else.
pub(crate) async fn checked(journal: &SqliteJournal, id: &ConversationId) -> u64 {
    let version = version(journal, id).await;
    if version > 0 {
        assert_eq!(journal.load(id).await.unwrap().unwrap().head, head(version));
    }
    let chunks = journal.chunks(id, Window::default()).await.unwrap();
    let seqs: Vec<u64> = chunks.iter().map(|chunk| chunk.seq).collect();
    assert_eq!(seqs, (1..=version).collect::<Vec<_>>());
    let events = journal.events(id, Cursor::default(), usize::MAX).await.unwrap();
    assert_eq!(events, (1..=version).map(event).collect::<Vec<_>>());
    version
}
