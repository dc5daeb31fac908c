//! Generates unique ids.

use everturn_wire::{ConversationId, TurnId};
use uuid::Uuid;

/// Returns a unique conversation id; later ones sort later.
pub(crate) fn conversation() -> ConversationId {
    ConversationId::from(Uuid::now_v7().simple().to_string())
}

/// Like [`conversation`], for an ephemeral conversation.
pub(crate) fn ephemeral() -> ConversationId {
    ConversationId::from(format!("{}{}", ConversationId::EPHEMERAL, Uuid::now_v7().simple()))
}

/// Returns a unique id for a call that is passed through; later ones sort later.
pub(crate) fn call() -> ConversationId {
    ConversationId::from(format!("call-{}", Uuid::now_v7().simple()))
}

/// Returns a unique turn id; later ones sort later.
pub(crate) fn turn() -> TurnId {
    TurnId::from(Uuid::now_v7().simple().to_string())
}

/// Returns a unique id for a question.
pub(crate) fn question() -> String {
    Uuid::now_v7().simple().to_string()
}

/// Returns a unique id for a queued message.
pub(crate) fn message() -> String {
    Uuid::now_v7().simple().to_string()
}
