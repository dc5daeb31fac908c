//! Builds frames for the peer.

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes};
use everturn_orchestrator::{Frame, StatusChange};
use everturn_wire::{CallInfo, ConversationId, DEFAULT_WORKSPACE, RetrySettingsState, ServerMessage};

/// Maximum length of an explanation, in bytes. It may contain a peer's text of megabytes.
const MAX_EXPLANATION: usize = 1024;
/// Maximum length of the reason in a close frame, in bytes.
const MAX_REASON: usize = 123;

/// Returns an event's frame, with bytes that were serialized once for all sockets.
pub(crate) fn event(frame: &Frame) -> Message {
    // JSON is UTF-8, so the other branch is never taken; it would lose nothing.
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

pub(crate) fn call_changed(call: CallInfo) -> Message {
    text(&ServerMessage::CallChanged(call))
}

/// Returns the answer to a command about a conversation that was refused.
pub(crate) fn refusal(conversation_id: Option<ConversationId>, why: &str) -> Message {
    refusal_of(conversation_id, None, why)
}

/// The same for a command about a message to queue, if it named one.
pub(crate) fn refusal_of(
    conversation_id: Option<ConversationId>,
    message_id: Option<String>,
    why: &str,
) -> Message {
    let message = shortened(why, MAX_EXPLANATION);
    text(&ServerMessage::ChatError { conversation_id, message_id, message })
}

/// Returns the answer to a frame that could not be parsed.
pub(crate) fn error(why: &str) -> Message {
    text(&ServerMessage::Error { message: shortened(why, MAX_EXPLANATION) })
}

pub(crate) fn close(code: u16, why: &str) -> Message {
    Message::Close(Some(CloseFrame { code, reason: shortened(why, MAX_REASON).into() }))
}

fn text(message: &ServerMessage) -> Message {
    // Wire types have string keys and finite numbers, so serializing cannot fail.
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
