//! A response that had to begin before its answer was known: frames that keep the client, then the answer.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use everturn_orchestrator::{Listener, NoAnswer, Said};
use futures_util::{Stream, StreamExt as _};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Interval, MissedTickBehavior, interval},
};

use super::{error, frames::Frames, merge::Merger};

/// Maximum size of a refusal that is repeated in a stream, in bytes.
const MOST_REFUSAL: usize = 256 << 10;

pub(super) struct Held {
    listener: Listener,
    frames: Frames,
    ticks: Interval,
    state: State,
    _place: OwnedSemaphorePermit,
}

enum State {
    /// Nothing is known of the answer.
    Waiting,
    /// The answer passes; its beginning is merged into the message that was begun here.
    Passing(Option<Merger>),
    /// A refusal: its status, and what has arrived of its body.
    Refused(u16, Vec<u8>),
    Over,
}

impl Held {
    pub(super) fn new(
        listener: Listener,
        frames: Frames,
        every: Duration,
        place: OwnedSemaphorePermit,
    ) -> Self {
        let mut ticks = interval(every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { listener, frames, ticks, state: State::Waiting, _place: place }
    }

    fn hear(&mut self, said: Option<Said>) -> Option<io::Result<Bytes>> {
        let (next, told) = match (std::mem::replace(&mut self.state, State::Over), said) {
            (State::Waiting, Some(Said::Head(status, headers))) => {
                let of =
                    |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().trim();
                let is_plain =
                    ["", "identity"].iter().any(|plain| of("content-encoding").eq_ignore_ascii_case(plain));
                let is_stream =
                    is_plain && of("content-type").to_ascii_lowercase().starts_with("text/event-stream");
                match status.is_success() && is_stream {
                    true => (State::Passing(self.frames.has_begun_message().then(Merger::default)), None),
                    // It cannot be told here, as the response has begun: the repeated request finds it.
                    false if status.is_success() => {
                        (State::Over, Some(Err(io::Error::other("the answer is not a stream"))))
                    }
                    false => (State::Refused(status.as_u16(), Vec::new()), None),
                }
            }
            (State::Passing(mut merger), Some(Said::Piece(piece))) => {
                let piece = match &mut merger {
                    Some(merger) => merger.take(piece),
                    None => piece,
                };
                (State::Passing(merger), Some(Ok(piece)))
            }
            (State::Passing(merger), Some(Said::End)) => {
                (State::Over, merger.map(|mut merger| merger.end()).filter(|rest| !rest.is_empty()).map(Ok))
            }
            (State::Refused(status, mut body), Some(Said::Piece(piece))) => {
                let room = MOST_REFUSAL - body.len();
                body.extend_from_slice(&piece[..piece.len().min(room)]);
                (State::Refused(status, body), None)
            }
            (State::Refused(status, body), Some(Said::End | Said::Cut)) => {
                (State::Over, Some(Ok(self.frames.refusal(status, &body))))
            }
            (_, Some(Said::Nothing(NoAnswer::Failed(failure)))) => {
                let status = error::status(&failure).as_u16();
                (State::Over, Some(Ok(self.frames.refusal(status, error::text(&failure).as_bytes()))))
            }
            (State::Waiting | State::Refused(..), Some(Said::Nothing(NoAnswer::TokenEnded))) => {
                (State::Over, Some(Ok(self.frames.refusal(401, error::ENDED.as_bytes()))))
            }
            // Broken off, so that the client repeats the request.
            _ => (State::Over, Some(Err(io::ErrorKind::ConnectionAborted.into()))),
        };
        self.state = next;
        told
    }
}

impl Stream for Held {
    type Item = io::Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let State::Over = self.state {
                return Poll::Ready(None);
            }
            if let Poll::Ready(said) = self.listener.poll_next_unpin(cx) {
                match self.hear(said) {
                    Some(Ok(bytes)) if bytes.is_empty() => {}
                    Some(told) => return Poll::Ready(Some(told)),
                    None => {}
                }
                continue;
            }
            if !matches!(self.state, State::Waiting) || self.ticks.poll_tick(cx).is_pending() {
                return Poll::Pending;
            }
            return Poll::Ready(Some(Ok(self.frames.next())));
        }
    }
}
