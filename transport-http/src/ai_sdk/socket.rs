//! `WebSocketChatTransport`: several concurrent requests over one WebSocket.

use std::{collections::HashMap, future::pending};

use axum::extract::ws::{Message, Utf8Bytes};
use bytes::Bytes;
use everturn_dialect::ai_sdk::{Frame, FrameAsk, FrameError, Reply, Version};
use everturn_orchestrator::Error;
use everturn_transport_ws::{Asked, News, Protocol, Read, Urgency};
use futures_util::{
    StreamExt as _,
    future::ready,
    stream::{self, BoxStream},
};
use tokio_stream::StreamMap;

use super::call::{self, Answer};
use crate::{api::Api, call::chat::Sent, refusal::Refusal};

/// The version of the stream that this transport supports, from its first release on.
const VERSION: Version = Version::Seven;

/// The protocol of `WebSocketChatTransport`.
#[derive(Clone)]
pub(super) struct ChatSocket {
    pub(super) api: Api,
}

type Pieces = BoxStream<'static, Result<Bytes, Error>>;

/// The result of a request.
pub(super) struct Opened {
    request_id: String,
    /// `None`: no turn is running.
    stream: Option<Pieces>,
}

/// The answers sent over one socket.
#[derive(Default)]
pub(super) struct Answers {
    /// The requests with unfinished answers or commands. Their ids are in use.
    requests: HashMap<String, State>,
    streams: StreamMap<String, Pieces>,
    /// The piece that is being sent.
    piece: Option<Piece>,
}

/// The state of a request.
enum State {
    /// Its command has not ended.
    Opening,
    /// The client has ended the answer before the command has.
    Aborted,
    /// The answer is being sent.
    Open(Reply),
}

/// A piece of an answer, sent up to an offset.
struct Piece {
    request_id: String,
    text: Utf8Bytes,
    at: usize,
}

impl Protocol for ChatSocket {
    type Command = Frame;
    type About = String;
    type Outcome = Opened;
    type News = Answers;

    const GOODBYE: &'static str = "the server is shutting down: resume after a while";

    fn news(&self) -> Answers {
        Answers::default()
    }

    fn read(&self, frame: &str, answers: &mut Answers) -> Read<Frame, String> {
        let frame = match Frame::read(frame) {
            Ok(frame) => frame,
            Err(FrameError::Nameless(why)) => return Read::NotUnderstood(why),
            Err(FrameError::Request { request_id, why }) if answers.requests.contains_key(&request_id) => {
                return Read::NotUnderstood(why);
            }
            Err(FrameError::Request { request_id, why }) => {
                return Read::Refused(text(Reply::new(&request_id).error(&why)));
            }
        };
        let (conversation, urgency) = match &frame.ask {
            FrameAsk::Abort => {
                answers.abort(&frame.request_id);
                return Read::Done;
            }
            FrameAsk::Send { request, .. } => (request.conversation_id.clone(), Urgency::Starts),
            FrameAsk::Resume(id) => (id.clone(), Urgency::Ordered),
        };
        let about = frame.request_id.clone();
        if answers.requests.contains_key(&about) {
            return Read::NotUnderstood(format!("the requestId {about:?} is in use"));
        }
        answers.requests.insert(about.clone(), State::Opening);
        let conversation = Some(conversation);
        Read::Command(Asked { command: frame, about, conversation, urgency, adds_stream: true })
    }

    async fn carry_out(&self, frame: Frame) -> Result<Opened, String> {
        let Frame { request_id, ask } = frame;
        let answer = match ask {
            FrameAsk::Send { request, idempotency_key, trace } => {
                let sent = Sent { key: idempotency_key, trace };
                call::answer(&self.api, VERSION, *request, sent).await
            }
            FrameAsk::Resume(id) => call::running(&self.api, VERSION, &id).await,
            // It was carried out when it was read.
            FrameAsk::Abort => Ok(Answer::Nothing),
        };
        let stream = match answer.map_err(Refusal::into_text)? {
            Answer::Stream(_, pieces) => Some(pieces),
            Answer::Whole(_, bytes) => Some(stream::once(ready(Ok(bytes.into()))).boxed()),
            Answer::Nothing => None,
        };
        Ok(Opened { request_id, stream })
    }

    fn has_reached(_: &Opened) -> bool {
        true
    }

    fn settle(Opened { request_id, stream }: Opened, answers: &mut Answers) -> Option<Message> {
        // If the client has ended the answer, the turn continues without it.
        let State::Opening = answers.requests.remove(&request_id)? else { return None };
        let reply = Reply::new(&request_id);
        let Some(stream) = stream else { return Some(text(reply.no_active())) };
        let start = text(reply.start());
        answers.requests.insert(request_id.clone(), State::Open(reply));
        answers.streams.insert(request_id, stream);
        Some(start)
    }

    fn refuse(request_id: String, why: &str, answers: &mut Answers) -> Message {
        // Clients ignore the answer to a request that they have ended.
        answers.requests.remove(&request_id);
        text(Reply::new(&request_id).error(why))
    }

    fn full(limit: usize) -> String {
        format!("this socket has reached its limit of {limit} streams: wait until one ends")
    }

    /// None, because a client that receives an error without a request id gives up all requests.
    fn complaint(_: &str) -> Option<Message> {
        None
    }
}

impl Answers {
    /// Ends the answer to this request because the client asks for it.
    fn abort(&mut self, request_id: &str) {
        match self.requests.get_mut(request_id) {
            Some(state @ State::Opening) => *state = State::Aborted,
            Some(State::Aborted) | None => {}
            Some(State::Open(_)) => self.end(request_id),
        }
    }

    /// Ends the answer to this request.
    fn end(&mut self, request_id: &str) {
        self.requests.remove(request_id);
        self.streams.remove(request_id);
        self.piece.take_if(|piece| piece.request_id == request_id);
    }

    /// Returns the next frame of the current piece.
    fn frame(&mut self) -> Option<Message> {
        let piece = self.piece.as_mut()?;
        let mut rest = &piece.text[piece.at..];
        let frame = match self.requests.get_mut(&piece.request_id) {
            Some(State::Open(reply)) => reply.next(&mut rest),
            _ => None,
        };
        piece.at = piece.text.len() - rest.len();
        match &frame {
            None => self.piece = None,
            Some(frame) if frame.is_last => {
                let request_id = std::mem::take(&mut piece.request_id);
                self.end(&request_id);
                self.piece = None;
            }
            Some(_) => {}
        }
        frame.map(|frame| text(frame.text))
    }
}

impl News for Answers {
    async fn next(&mut self, _: bool) -> Message {
        loop {
            if let Some(frame) = self.frame() {
                return frame;
            }
            match self.streams.next().await {
                Some((request_id, Ok(bytes))) => {
                    // Streams are JSON, hence UTF-8, so nothing is lost.
                    let text = Utf8Bytes::try_from(bytes).unwrap_or_default();
                    self.piece = Some(Piece { request_id, text, at: 0 });
                }
                // The server is shutting down, and the socket is about to be closed with that reason.
                Some((request_id, Err(_))) => drop(self.streams.remove(&request_id)),
                None => pending().await,
            }
        }
    }

    fn streams(&self) -> usize {
        self.streams.len()
    }
}

fn text(frame: String) -> Message {
    Message::Text(frame.into())
}
