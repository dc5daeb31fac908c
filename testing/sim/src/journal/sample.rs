//! Sample data for journals.

use std::sync::Arc;

use bytes::Bytes;
use everturn_orchestrator::{
    Commit, Cursor, Definition, Head, Journal, Moment, Stored, StoredEvent, TurnRecord, Version, Wait,
    Window,
    kernel::{Effects, Input, Millis, NoRetry, Prompt, Settings, Turn},
};
use everturn_wire::{
    Chunk, ConversationId, DoneReason, QueuedMessage, Role, StoredChunk, TurnId, TurnMetrics, Usage,
};

pub(super) fn id(text: &str) -> ConversationId {
    ConversationId::from(text)
}

pub(super) fn head(last_activity_at: u64) -> Head {
    Head { last_activity_at: Millis(last_activity_at), ..Head::new(Millis(1)) }
}

pub(super) fn chunk(seq: u64, role: Role, chunk: Chunk) -> Arc<StoredChunk> {
    Arc::new(StoredChunk { seq, role, chunk: Arc::new(chunk), supersedes: (seq == 4).then_some(2) })
}

/// Returns a commit whose head has this time of last activity.
pub(super) fn commit(last_activity_at: u64) -> Commit {
    Commit::new(head(last_activity_at))
}

/// Returns an event of `size` cursor positions that begins at `start`.
pub(super) fn event(start: u64, size: u64) -> StoredEvent {
    let json = format!(r#"{{"type":"text-delta","delta":"é\n{start}","conversationId":"c","turnId":"t"}}"#);
    StoredEvent {
        start: Cursor::from_value(start),
        end: Cursor::from_value(start + size),
        json: Bytes::from(json),
    }
}

pub(super) fn figures(turn: &str) -> TurnMetrics {
    TurnMetrics {
        usage: Usage {
            input_tokens: 7,
            output_tokens: 3,
            cache_read_tokens: Some(2),
            cache_write_tokens: None,
            reasoning_tokens: Some(1),
        },
        duration_ms: Some(12),
        steps: 2,
        reason: Some(DoneReason::Error),
        first_seq: Some(3),
        last_seq: Some(5),
        ..TurnMetrics::new(TurnId::from(turn))
    }
}

/// Returns a wait until this time.
pub(crate) fn until(at: u64) -> Wait {
    Wait::Until(moment(at))
}

/// Returns the end of a wait.
pub(super) fn moment(at: u64) -> Moment {
    Moment { at: Millis(at), decided_ms: at / 2 }
}

/// Returns a waiting turn with a queued message.
pub(crate) fn turn(wait: Wait) -> TurnRecord {
    let (mut effects, now) = (Effects::new(), Millis(5));
    let prompt = Prompt { text: "hi".to_owned(), images: Vec::new() };
    let mut turn = Turn::begin(TurnId::from("t"), Settings::default(), prompt, now, &mut effects);
    let message = QueuedMessage { message_id: "m".to_owned(), text: "and \"this\"".to_owned() };
    turn.handle(now, Input::Steer(message), &NoRetry, &mut effects);
    let mut definition = Definition::new("test/m");
    definition.reasoning_effort = wait.until().map(|_| "high".to_owned());
    definition.supersedes = wait.until().map(|_| 3);
    TurnRecord { snapshot: turn.snapshot(), wait, from: Cursor::from_value(3), first_seq: 4, definition }
}

/// Appends, and asserts success.
pub(super) async fn add(
    journal: &dyn Journal,
    id: &ConversationId,
    expected: Version,
    commit: Commit,
) -> Version {
    journal.append(id, expected, commit).await.expect("an append at the current version succeeds")
}

/// Loads, and asserts that the conversation exists.
pub(super) async fn load(journal: &dyn Journal, id: &ConversationId) -> Stored {
    let stored = journal.load(id).await.expect("loading succeeds");
    stored.expect("a conversation with a head is there")
}

pub(super) async fn chunks(journal: &dyn Journal, id: &ConversationId) -> Vec<Arc<StoredChunk>> {
    journal.chunks(id, Window::default()).await.expect("reading the history succeeds")
}

pub(super) async fn events(
    journal: &dyn Journal,
    id: &ConversationId,
    after: u64,
    limit: usize,
) -> Vec<StoredEvent> {
    let after = Cursor::from_value(after);
    journal.events(id, after, limit).await.expect("reading the events succeeds")
}

pub(super) async fn metrics(journal: &dyn Journal, id: &ConversationId) -> Vec<TurnMetrics> {
    journal.metrics(id).await.expect("reading the figures succeeds")
}
