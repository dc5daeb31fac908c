//! Frames sent by clients over a WebSocket.

use std::mem;

use everturn_wire::{ConversationId, TraceContext};
use serde::Deserialize;

use super::{
    ChatRequest,
    request::{Apart, Headers},
};
use crate::{conversation_of, failure::brief, lenient};

/// Maximum length of a request's id, in bytes. Every frame of the answer repeats it.
const MAX_REQUEST_ID: usize = 128;

/// A frame of `WebSocketChatTransport`.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The id of the request, repeated in the frames of its answer.
    pub request_id: String,
    /// The command.
    pub ask: FrameAsk,
}

/// The command of a frame.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameAsk {
    /// Starts or continues a turn, like `POST /api/chat`.
    Send {
        /// The request.
        request: Box<ChatRequest>,
        /// The idempotency key, if any.
        idempotency_key: Option<String>,
        /// The trace context of the request, if any.
        trace: Option<TraceContext>,
    },
    /// Streams the running turn of this conversation from its start.
    Resume(ConversationId),
    /// Ends the answer to this request.
    Abort,
}

/// Why a frame is rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// It has no valid request id, so no request can be rejected.
    Nameless(String),
    /// The request is invalid.
    Request {
        /// The id of the request.
        request_id: String,
        /// What is wrong with it.
        why: String,
    },
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    #[serde(rename = "type", default, deserialize_with = "lenient::text")]
    kind: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    request_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resume {
    id: String,
    last_sequence: Option<serde::de::IgnoredAny>,
}

impl Frame {
    /// Parses a text frame.
    ///
    /// # Errors
    /// Returns an error if it is not a frame of the SDK, or if its request is invalid.
    pub fn read(text: &str) -> Result<Self, FrameError> {
        let nameless =
            |error| FrameError::Nameless(brief(format!("not a frame of WebSocketChatTransport: {error}")));
        let head: Head = serde_json::from_str(text).map_err(nameless)?;
        let request_id = head.request_id.filter(|id| (1..=MAX_REQUEST_ID).contains(&id.len()));
        let Some(request_id) = request_id else {
            let why = format!("the frame has no requestId of 1 to {MAX_REQUEST_ID} bytes");
            return Err(FrameError::Nameless(why));
        };
        match ask(head.kind.as_deref().unwrap_or_default(), text) {
            Ok(ask) => Ok(Self { request_id, ask }),
            Err(why) => Err(FrameError::Request { request_id, why: brief(why) }),
        }
    }
}

fn ask(kind: &str, text: &str) -> Result<FrameAsk, String> {
    let strange = |error| format!("not a frame of WebSocketChatTransport: {error}");
    match kind {
        "abort" => Ok(FrameAsk::Abort),
        "resume" => {
            let Resume { id, last_sequence } = serde_json::from_str(text).map_err(strange)?;
            match last_sequence {
                // A replay joins pieces of text, so its chunks have other numbers.
                Some(_) => Err("lastSequence is not supported: omit it to get the whole turn".to_owned()),
                None => Ok(FrameAsk::Resume(conversation_of(&id))),
            }
        }
        "send" => {
            let mut apart: Apart = serde_json::from_str(text).map_err(strange)?;
            let Headers { idempotency_key, traceparent, tracestate } = mem::take(&mut apart.headers);
            let request = Box::new(ChatRequest::of_frame(apart)?);
            let trace = traceparent.and_then(|parent| TraceContext::read(&parent, tracestate.as_deref()));
            Ok(FrameAsk::Send { request, idempotency_key, trace })
        }
        other => {
            let shown: String = other.chars().take(64).collect();
            Err(format!("unknown frame type {shown:?}: expected send, resume or abort"))
        }
    }
}
