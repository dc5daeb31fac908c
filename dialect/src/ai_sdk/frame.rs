//! What a client sends over a WebSocket.

use everturn_wire::{ConversationId, TraceContext};
use serde::Deserialize;

use super::{ChatRequest, request::Apart};
use crate::{conversation_of, failure::brief, lenient};

/// Longest id of a request, in bytes: it is repeated in every frame of the answer.
const MAX_REQUEST_ID: usize = 128;

/// A frame of `WebSocketChatTransport`.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The id of the request, which the frames of its answer name.
    pub request_id: String,
    /// What is asked for.
    pub ask: FrameAsk,
}

/// What a frame asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum FrameAsk {
    /// What `POST /api/chat` takes.
    Send {
        /// The request.
        request: Box<ChatRequest>,
        /// The key under which the same request is recognized.
        idempotency_key: Option<String>,
        /// The trace that the request belongs to.
        trace: Option<TraceContext>,
    },
    /// The running turn of this conversation from its start.
    Resume(ConversationId),
    /// No more of the answer to this request.
    Abort,
}

/// Why a frame is not understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FrameError {
    /// It names no request, so that there is none to refuse.
    Nameless(String),
    /// The request cannot be carried out.
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

/// The headers of a request that mean something here. The SDK writes their names in lower case.
#[derive(Default, Deserialize)]
#[serde(rename_all = "kebab-case", default)]
struct Headers {
    #[serde(deserialize_with = "lenient::text")]
    idempotency_key: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    traceparent: Option<String>,
    #[serde(deserialize_with = "lenient::text")]
    tracestate: Option<String>,
}

#[derive(Deserialize)]
struct WithHeaders {
    #[serde(default)]
    headers: Headers,
}

impl Frame {
    /// Understands a text frame.
    ///
    /// # Errors
    /// When it is none of the SDK's, or its request makes no sense.
    pub fn read(text: &str) -> Result<Self, FrameError> {
        let nameless = |error| {
            FrameError::Nameless(brief(format!("the frame is not one of WebSocketChatTransport's: {error}")))
        };
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
    let strange = |error| format!("the frame is not one of WebSocketChatTransport's: {error}");
    match kind {
        "abort" => Ok(FrameAsk::Abort),
        "resume" => {
            let Resume { id, last_sequence } = serde_json::from_str(text).map_err(strange)?;
            match last_sequence {
                // A replay joins what was told in pieces: its chunks have other numbers.
                Some(_) => {
                    Err("lastSequence is not supported: leave it out to be sent the whole turn".to_owned())
                }
                None => Ok(FrameAsk::Resume(conversation_of(&id))),
            }
        }
        "send" => {
            let WithHeaders { headers } = serde_json::from_str(text).map_err(strange)?;
            let apart: Apart = serde_json::from_str(text).map_err(strange)?;
            let request = Box::new(ChatRequest::of_frame(apart)?);
            let Headers { idempotency_key, traceparent, tracestate } = headers;
            let trace = traceparent.and_then(|parent| TraceContext::read(&parent, tracestate.as_deref()));
            Ok(FrameAsk::Send { request, idempotency_key, trace })
        }
        other => {
            let shown: String = other.chars().take(64).collect();
            Err(format!("unknown frame type {shown:?}: expected send, resume or abort"))
        }
    }
}
