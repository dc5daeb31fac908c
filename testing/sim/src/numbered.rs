//! Numbered appends, whose order shows in what is stored; and turns.

use bytes::Bytes;
use everturn_orchestrator::{
    Commit, Cursor, Definition, Head, StoredEvent, TurnRecord, Wait,
    kernel::{Effects, Millis, Prompt, Settings, Turn},
};
use everturn_wire::{Chunk, ConversationStatus, Role, StoredChunk, TurnId};

/// Returns the head after append `number`.
pub fn head(number: u64) -> Head {
    Head {
        created_at: Millis(1),
        last_activity_at: Millis(number),
        title: "numbers".to_owned(),
        status: ConversationStatus::Idle,
        end_reason: None,
        model: None,
        end: Cursor::from_value(number),
        last_seq: number,
    }
}

/// Returns a commit that adds chunk and event `number`, with this text.
pub fn numbered(number: u64, text: &str) -> Commit {
    let text = text.to_owned();
    let event = StoredEvent {
        start: Cursor::from_value(number - 1),
        end: Cursor::from_value(number),
        json: Bytes::from(text.clone()),
    };
    let chunk =
        StoredChunk { seq: number, role: Role::User, chunk: Chunk::Text { text }.into(), supersedes: None };
    Commit::new(head(number)).chunk(chunk).event(event)
}

/// Returns a running turn.
pub fn turn() -> TurnRecord {
    let prompt = Prompt { text: "hi".to_owned(), images: Vec::new() };
    let turn = Turn::begin(TurnId::from("t"), Settings::default(), prompt, Millis(5), &mut Effects::new());
    TurnRecord {
        snapshot: turn.snapshot(),
        wait: Wait::Now,
        from: Cursor::from_value(0),
        first_seq: 1,
        definition: Definition::new("test/m"),
    }
}
