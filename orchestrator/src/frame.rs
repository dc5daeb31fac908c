//! An event, serialized once for all subscribers.

mod join;

use std::io::Write as _;

use bytes::{Bytes, BytesMut};
use everturn_wire::{AgentEvent, ConversationId, EventBody, OutputStream, TurnId};

use crate::{Cursor, StoredEvent};
use join::Delta;

/// Space for an envelope, a delta's tag and its two ids, in bytes.
const ENVELOPE: usize = 256;

/// Shown between an answer that broke off and its repetition.
const STARTS_AGAIN: &str = "\n\n[The answer broke off here. It starts again:]\n\n";

/// Shown as the output of a tool whose call waits for a person.
const NEEDS_APPROVAL: &str = "This call waits for approval. It runs when somebody allows it.\n";

/// Shown as the output of a tool that asks a person.
const ASKS: &str = "This call waits for an answer to a question of its tool.\n";

/// The start of a delta's event, up to its text.
const TEXT: &[u8] = br#"{"type":"text-delta","delta":""#;
const REASONING: &[u8] = br#"{"type":"reasoning-delta","delta":""#;

/// Maximum size of events whose memory is used again for a subscriber, in bytes.
const KEPT: usize = 1 << 10;

/// Maximum unused capacity of an event, in bytes.
const SPARE: usize = 128;

/// An event, serialized once into shared bytes that serve every transport. Cheap to clone.
///
/// The bytes are the WebSocket frame `{"type":"chat.delta","cursor":"..","event":{..}}`, which contains the event.
#[derive(Clone, Debug)]
pub struct Frame {
    start: Cursor,
    end: Cursor,
    bytes: Bytes,
    event_at: u32,
    /// The position of a delta's text, as escaped JSON.
    delta: Option<Delta>,
    extension: bool,
    ends_turn: bool,
}

impl Frame {
    /// Serializes an event that begins at `start`.
    pub(crate) fn new(
        start: Cursor,
        conversation_id: &ConversationId,
        turn_id: Option<&TurnId>,
        body: EventBody,
    ) -> Self {
        if let Some(delta) = body.delta() {
            let reasoning = matches!(body, EventBody::ReasoningDelta { .. });
            return Self::of_delta(start, conversation_id, turn_id, delta, reasoning);
        }
        let (extension, ends_turn) = (body.is_extension(), matches!(body, EventBody::TurnSealed));
        let event = AgentEvent { body, conversation_id: conversation_id.clone(), turn_id: turn_id.cloned() };
        let mut frame = Self::envelope(start, Cursor(start.0 + 1), 0, |bytes| {
            // Cannot fail: wire types have string keys and finite numbers, and writing to memory always succeeds.
            let _ = serde_json::to_writer(bytes, &event);
        });
        (frame.extension, frame.ends_turn) = (extension, ends_turn);
        frame
    }

    /// Serializes streamed text by hand, for speed; the bytes are the same.
    fn of_delta(
        start: Cursor,
        conversation_id: &ConversationId,
        turn_id: Option<&TurnId>,
        delta: &str,
        reasoning: bool,
    ) -> Self {
        let head = if reasoning { REASONING } else { TEXT };
        let (from, mut to) = (head.len() as u32, 0);
        let end = Cursor(start.0 + delta.len().max(1) as u64);
        let mut frame = Self::envelope(start, end, delta.len(), |bytes| {
            // Cannot fail, as in `new`.
            let event_at = bytes.len();
            bytes.extend_from_slice(&head[..head.len() - 1]);
            let _ = serde_json::to_writer(&mut *bytes, delta);
            to = (bytes.len() - event_at) as u32 - 1;
            bytes.extend_from_slice(br#","conversationId":"#);
            let _ = serde_json::to_writer(&mut *bytes, conversation_id);
            if let Some(turn_id) = turn_id {
                bytes.extend_from_slice(br#","turnId":"#);
                let _ = serde_json::to_writer(&mut *bytes, turn_id);
            }
            bytes.push(b'}');
        });
        frame.delta = Some(Delta { reasoning, from, to });
        frame
    }

    /// Returns the frame as its conversation's caller knows it.
    pub(crate) fn under(self, LocalId { field, shown, bytes }: &mut LocalId) -> Self {
        let Some(end) = self.end_of(field) else { return self };
        let (before, after) = (&self.bytes[..end - field.len() + *shown], &self.bytes[end - "\"".len()..]);
        let mut alone = BytesMut::new();
        let bytes = if self.bytes.len() > KEPT { &mut alone } else { bytes };
        bytes.reserve(before.len() + after.len());
        bytes.extend_from_slice(before);
        bytes.extend_from_slice(after);
        Self { bytes: bytes.split().freeze(), ..self }
    }

    /// Returns where this field of the event ends.
    fn end_of(&self, field: &str) -> Option<usize> {
        // A delta's text comes right before it.
        let of_delta = self.delta.map(|delta| self.event_at as usize + delta.to as usize + 1 + field.len());
        let is_there =
            |end: &usize| self.bytes.get(..*end).is_some_and(|head| head.ends_with(field.as_bytes()));
        if let Some(end) = of_delta.filter(is_there) {
            return Some(end);
        }
        // The last one, at the end or before a comma: what precedes it is the event's content.
        let mut end = self.bytes.len().saturating_sub("}}".len());
        while !is_there(&end) {
            end = memchr::memrchr(b',', &self.bytes[..end])?;
        }
        Some(end)
    }

    /// Restores a stored event.
    pub(crate) fn stored(event: &StoredEvent) -> Self {
        let mut frame = Self::envelope(event.start, event.end, event.json.len(), |bytes| {
            bytes.extend_from_slice(&event.json);
        });
        if let Ok(AgentEvent { body, .. }) = serde_json::from_slice(&event.json) {
            (frame.extension, frame.ends_turn) = (body.is_extension(), matches!(body, EventBody::TurnSealed));
            let reasoning = matches!(body, EventBody::ReasoningDelta { .. });
            frame.delta = body.delta().and_then(|_| delta_at(&event.json, reasoning));
        }
        frame
    }

    /// Returns the cursor before the event.
    pub(crate) fn start(&self) -> Cursor {
        self.start
    }

    /// Returns the cursor after the event.
    pub fn end(&self) -> Cursor {
        self.end
    }

    /// Returns the event's JSON, for NDJSON and SSE.
    pub fn event(&self) -> Bytes {
        self.bytes.slice(self.event_at as usize..self.bytes.len() - 1)
    }

    fn json(&self) -> &[u8] {
        &self.bytes[self.event_at as usize..self.bytes.len() - 1]
    }

    /// Returns the text of a delta as escaped JSON without the quotes, and whether it is reasoning. `None` = the event
    /// is not a delta.
    pub fn delta(&self) -> Option<(Bytes, bool)> {
        let delta = self.delta?;
        Some((self.event().slice(delta.range()), delta.reasoning))
    }

    /// Returns the WebSocket's `chat.delta` frame.
    pub fn chat_delta(&self) -> Bytes {
        self.bytes.clone()
    }

    /// Whether the event is a delta.
    pub(crate) fn is_delta(&self) -> bool {
        self.delta.is_some()
    }

    /// Whether the event is only for subscribers that asked for extensions.
    pub fn is_extension(&self) -> bool {
        self.extension
    }

    /// Whether something of a step is visible after this event; `None` = unchanged.
    pub(crate) fn shows(&self) -> Option<bool> {
        match self.delta {
            Some(_) => Some(true),
            None if self.is(b"tool-call\"") => Some(true),
            None if self.is(b"turn-start\"") || self.is(b"step-complete\"") || self.is(b"step-rewound\"") => {
                Some(false)
            }
            None => None,
        }
    }

    /// Whether the event is of this type. `name` includes the closing quote.
    fn is(&self, name: &[u8]) -> bool {
        self.json().strip_prefix(br#"{"type":""#).is_some_and(|rest| rest.starts_with(name))
    }

    /// Returns the event sent instead to subscribers without extensions, if any. They cannot take text back, so a note
    /// in the text says that it starts again, if any was shown. They know neither approvals nor questions, so the
    /// tool's output says why nothing happens.
    pub(crate) fn notice(&self, has_shown: bool) -> Option<Self> {
        let rewinds = has_shown && self.is(b"step-rewound\"");
        if !rewinds && !self.is(b"approval-requested\"") && !self.is(b"question-asked\"") {
            return None;
        }
        let event: AgentEvent = serde_json::from_slice(self.json()).ok()?;
        let output = |step_id, tool_call_id, data: &str| EventBody::ToolOutput {
            step_id: Some(step_id),
            tool_call_id,
            data: data.to_owned(),
            stream: OutputStream::Stderr,
        };
        let body = match event.body {
            EventBody::ApprovalRequested { step_id, tool_call_id, .. } => {
                output(step_id, tool_call_id, NEEDS_APPROVAL)
            }
            EventBody::QuestionAsked(asked) => output(asked.step_id, asked.tool_call_id, ASKS),
            _ => EventBody::TextDelta { delta: STARTS_AGAIN.to_owned() },
        };
        let event = AgentEvent { body, ..event };
        Some(Self::envelope(self.start, self.end, ENVELOPE, |bytes| {
            // Cannot fail, as in `new`.
            let _ = serde_json::to_writer(bytes, &event);
        }))
    }

    /// Whether it is the last event of its turn.
    pub fn ends_turn(&self) -> bool {
        self.ends_turn
    }

    pub(crate) fn to_stored(&self) -> StoredEvent {
        StoredEvent { start: self.start, end: self.end, json: self.event() }
    }

    /// The memory used by the event, in bytes.
    pub(crate) fn cost(&self) -> usize {
        self.bytes.len() + size_of::<Self>()
    }

    /// Returns the part of the event after `cursor`, which lies inside it. Only text can be split; a cursor inside a
    /// character counts as before it.
    pub(crate) fn rest(&self, cursor: Cursor) -> Self {
        let Ok(AgentEvent { body, conversation_id, turn_id }) = serde_json::from_slice(self.json()) else {
            return self.clone();
        };
        let Some(text) = body.delta() else { return self.clone() };
        let reasoning = matches!(body, EventBody::ReasoningDelta { .. });
        let at = text.floor_char_boundary((cursor.0 - self.start.0) as usize);
        let start = Cursor(self.start.0 + at as u64);
        Self::of_delta(start, &conversation_id, turn_id.as_ref(), &text[at..], reasoning)
    }

    /// Wraps the event written by `write`, of about `size` bytes, in its envelope.
    fn envelope(start: Cursor, end: Cursor, size: usize, write: impl FnOnce(&mut Vec<u8>)) -> Self {
        let mut bytes = Vec::with_capacity(size + ENVELOPE);
        // Writing to memory cannot fail.
        let _ = write!(bytes, r#"{{"type":"chat.delta","cursor":"{end}","event":"#);
        let event_at = bytes.len() as u32;
        write(&mut bytes);
        bytes.push(b'}');
        if bytes.capacity() - bytes.len() > SPARE {
            bytes.shrink_to_fit();
        }
        Self { start, end, bytes: bytes.into(), event_at, delta: None, extension: false, ends_turn: false }
    }
}

/// The id of a conversation in an event.
pub(crate) struct LocalId {
    field: String,
    /// How many bytes of it come before what its caller does not see, which is the end of the id.
    shown: usize,
    /// The memory of the last event, used again once nobody holds that event.
    bytes: BytesMut,
}

impl LocalId {
    pub(crate) fn of(id: &ConversationId) -> Self {
        let head = r#","conversationId":""#;
        let field = [head, id.as_str(), "\""].concat();
        Self { field, shown: head.len() + id.local().as_str().len(), bytes: BytesMut::new() }
    }
}

/// Finds the text of a delta: the wire puts `type` first, then `delta`.
fn delta_at(json: &[u8], reasoning: bool) -> Option<Delta> {
    let head = if reasoning { REASONING } else { TEXT };
    let text = json.strip_prefix(head)?;
    let mut at = 0;
    while *text.get(at)? != b'"' {
        at += if text[at] == b'\\' { 2 } else { 1 };
    }
    Some(Delta { reasoning, from: head.len() as u32, to: (head.len() + at) as u32 })
}

#[cfg(test)]
mod tests;
