//! What the peer is sent, as frames.

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes};
use everturn_orchestrator::{Frame, StatusChange};
use everturn_wire::{ConversationId, DEFAULT_WORKSPACE, RetrySettingsState, ServerMessage};

/// Longest explanation, in bytes: a peer's own words may be in it, and they may be megabytes.
const MAX_EXPLANATION: usize = 1024;
/// Longest reason that fits a close frame, in bytes.
const MAX_REASON: usize = 123;

/// An event, in the bytes that were serialized once for everyone.
pub(crate) fn event(frame: &Frame) -> Message {
    // JSON is UTF-8: the other branch is never taken, and would lose nothing.
    match Utf8Bytes::try_from(frame.chat_delta()) {
        Ok(text) => Message::Text(text),
        Err(_) => Message::Binary(frame.chat_delta()),
    }
}

pub(crate) fn status_changed(change: StatusChange) -> Message {
    text(&ServerMessage::StatusChanged {
        conversation_id: change.conversation_id,
        status: change.status,
        workspace_id: DEFAULT_WORKSPACE.to_owned(),
    })
}

pub(crate) fn retry_settings_changed(state: RetrySettingsState) -> Message {
    text(&ServerMessage::RetrySettingsChanged(state))
}

/// A command about a conversation was not carried out.
pub(crate) fn refusal(conversation_id: Option<ConversationId>, why: &str) -> Message {
    text(&ServerMessage::ChatError { conversation_id, message: shortened(why, MAX_EXPLANATION) })
}

/// A frame was not understood.
pub(crate) fn error(why: &str) -> Message {
    text(&ServerMessage::Error { message: shortened(why, MAX_EXPLANATION) })
}

pub(crate) fn close(code: u16, why: &str) -> Message {
    Message::Close(Some(CloseFrame { code, reason: shortened(why, MAX_REASON).into() }))
}

fn text(message: &ServerMessage) -> Message {
    // A wire type has string keys and finite numbers: it always has its JSON.
    Message::Text(serde_json::to_string(message).unwrap_or_default().into())
}

fn shortened(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    format!("{}…", &text[..text.floor_char_boundary(most - '…'.len_utf8())])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_long_is_cut_between_characters() {
        assert_eq!(shortened("abc", 3), "abc");
        assert_eq!(shortened("abcdef", 5), "ab…");
        assert_eq!(shortened("aüüü", 6), "aü…");
    }
}
