//! Names that nobody else has.

use everturn_wire::{ConversationId, TurnId};
use uuid::Uuid;

/// A conversation id that no other has; later ones sort later.
pub(crate) fn conversation() -> ConversationId {
    ConversationId::from(Uuid::now_v7().simple().to_string())
}

/// The same for an ephemeral one.
pub(crate) fn ephemeral() -> ConversationId {
    ConversationId::from(format!("{}{}", ConversationId::EPHEMERAL, Uuid::now_v7().simple()))
}

/// A turn id that no other has; later ones sort later.
pub(crate) fn turn() -> TurnId {
    TurnId::from(Uuid::now_v7().simple().to_string())
}

/// A name for a queued message that no other has.
pub(crate) fn message() -> String {
    Uuid::now_v7().simple().to_string()
}
