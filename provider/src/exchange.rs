//! One provider call: a request, its response, and the events read from it.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use everturn_kernel::StreamEvent;
use everturn_wire::{Category, Failure, Value};
use futures_core::{Stream, future::BoxFuture, stream::BoxStream};

use crate::{
    SseDecoder, SseEvent,
    bulk::{MOST_VALUES, is_bulky},
    endpoint::{Endpoint, Head},
    http::{BODY_LIMIT, ConnectionError, Notice, Request, Response, Sending, Watch},
    secret::Mask,
    surrogate::Surrogates,
};

/// Maximum number of yields to other tasks, both before the text of a burst is yielded, and at the end of an answer
/// before the rest of the body is handed to a background task.
const MOST_ROUNDS: u32 = 32;
const MOST_ENDING: u32 = 2;

/// Limits from which on reading pauses, however much has arrived: the number of pending events, and the length of the text
/// that the last one has joined, in bytes. A fast provider could otherwise keep an answer from being shown.
const MOST_FACTS: usize = 256;
const MOST_TEXT: usize = 4 << 10;

/// Growth of the memory held by a call from which on it is reported, in bytes.
const REPORTED: usize = 64 << 10;

/// Events read and not yet yielded.
pub(crate) type Facts = VecDeque<StreamEvent>;

/// Reads the stream of one API.
pub(crate) trait Reader: Send + 'static {
    /// Handles an event. Not called again after [`Reading::Complete`] or a flaw.
    fn event(&mut self, event: &SseEvent<'_>, facts: &mut Facts) -> Result<Reading, Flaw>;

    /// Handles the clean end of the stream.
    fn end(&mut self, facts: &mut Facts) -> Result<(), Flaw>;

    /// Returns a number that grows with all content of the answer, whether yielded or collected, and with nothing else.
    fn said(&self) -> usize;

    /// Returns the number of bytes that were kept for events that follow later.
    fn collected(&self) -> usize;
}

/// Whether more of the stream must be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    More,
    /// The terminal event arrived, and `Finished` was yielded.
    Complete,
}

/// Why an answer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The payload is an error by the provider, or not an answer.
    Payload(String),
    /// The stream ended too early.
    Truncated(&'static str),
    /// The answer exceeds a configured limit.
    Excess(String),
}

/// Runs a call. Dropping the stream closes the connection.
pub(crate) fn run<R: Reader>(
    endpoint: Arc<Endpoint>,
    request: Request,
    body: Body<R>,
) -> BoxStream<'static, StreamEvent> {
    let phase = Phase::New(Box::new((request, body)));
    let mask = endpoint.mask();
    Box::pin(Exchange { endpoint, facts: Facts::new(), masked: None, mask, rounds: 0, phase })
}

struct Exchange<R> {
    endpoint: Arc<Endpoint>,
    facts: Facts,
    /// An event without secrets, which follows one that was yielded just now.
    masked: Option<StreamEvent>,
    mask: Mask,
    /// Yields so far: before pending text is handed on, or before the end of the body is left to a background task.
    rounds: u32,
    phase: Phase<R>,
}

/// Boxed because the variants are large and a call is in one phase at a time.
enum Phase<R> {
    /// Not polled yet; nothing has been sent.
    New(Box<(Request, Body<R>)>),
    /// Waiting for the response headers.
    Asking(Sending, Box<Call<R>>),
    /// Waiting for the next piece of the body.
    Reading(Box<Response>, Box<Call<R>>),
    /// The answer is complete. Waiting for the end of the body, so that the connection can be reused.
    Ending(Box<Response>),
    /// Waiting for the body of an error response, which explains the failure.
    Refused(BoxFuture<'static, Failure>),
    Over,
}

/// The state of a call during the whole exchange.
struct Call<R> {
    watch: Watch,
    body: Body<R>,
}

/// A body read as an event stream.
pub(crate) struct Body<R> {
    reader: R,
    decoder: SseDecoder,
    surrogates: Surrogates,
    head: Head,
    /// The start of the body until its first event. A body without events may be an error in plain JSON.
    pub(crate) opening: Option<Vec<u8>>,
    /// The memory held, as last reported.
    reported: usize,
}

impl<R: Reader> Stream for Exchange<R> {
    type Item = StreamEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        let this = self.get_mut();
        loop {
            let polled = match &this.phase {
                Phase::Over => match this.next_fact() {
                    Some(fact) => return Poll::Ready(Some(fact)),
                    None if this.facts.is_empty() => return Poll::Ready(None),
                    None => continue,
                },
                Phase::Reading(..) if this.rounds > 0 => this.poll_body(cx),
                Phase::Ending(_) => this.poll_end(cx),
                _ if this.masked.is_some() || !this.facts.is_empty() => match this.next_fact() {
                    Some(fact) => return Poll::Ready(Some(fact)),
                    None => continue,
                },
                Phase::New(_) => {
                    this.begin();
                    continue;
                }
                Phase::Asking(..) => this.poll_head(cx),
                Phase::Reading(..) => this.poll_body(cx),
                Phase::Refused(_) => this.poll_refusal(cx),
            };
            if let Err(failure) = ready!(polled) {
                this.facts.push_back(StreamEvent::Failed(failure));
                this.phase = Phase::Over;
            }
        }
    }
}

impl<R: Reader> Exchange<R> {
    /// Returns the next event without secrets, unless it is kept until more is known.
    fn next_fact(&mut self) -> Option<StreamEvent> {
        if let Some(masked) = self.masked.take() {
            return Some(masked);
        }
        let [before, masked] = self.mask.take(self.facts.pop_front()?);
        match before {
            Some(_) => {
                self.masked = masked;
                before
            }
            None => masked,
        }
    }

    fn begin(&mut self) {
        let Phase::New(asked) = mem::replace(&mut self.phase, Phase::Over) else { return };
        let (request, body) = *asked;
        let http = self.endpoint.http();
        let call = Call { watch: Watch::begin(http.timeouts()), body };
        self.phase = Phase::Asking(http.send(request), Box::new(call));
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Phase::Asking(asked, call) = &mut self.phase else { return Poll::Ready(Ok(())) };
        let Poll::Ready(response) = Pin::new(asked).poll(cx) else {
            let notice = ready!(call.watch.poll_notice(cx));
            return Poll::Ready(self.take_notice(Some(notice)));
        };
        Poll::Ready(match response {
            Ok(response) => self.take_head(response),
            Err(fault) => Err(self.endpoint.lost(&fault, None)),
        })
    }

    fn take_head(&mut self, mut response: Response) -> Result<(), Failure> {
        let Phase::Asking(_, mut call) = mem::replace(&mut self.phase, Phase::Over) else { return Ok(()) };
        call.body.head = Head::of(&mut response);
        self.facts.extend(call.body.head.limits().map(StreamEvent::Limits));
        if (200..300).contains(&response.status()) {
            let notice = call.watch.answered();
            self.phase = Phase::Reading(Box::new(response), call);
            return self.take_notice(notice);
        }
        let endpoint = self.endpoint.clone();
        let head = call.body.head;
        self.phase = Phase::Refused(Box::pin(async move {
            let explanation = response.body().await;
            endpoint.refused(&head, &explanation)
        }));
        Ok(())
    }

    fn poll_refusal(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Phase::Refused(explained) = &mut self.phase else { return Poll::Ready(Ok(())) };
        explained.as_mut().poll(cx).map(Err)
    }

    /// Reads everything available, and what arrives while other tasks run, so that text that arrives in many pieces at
    /// once is yielded as one. Text that arrives on its own is yielded at once.
    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while let Phase::Reading(response, call) = &mut self.phase {
            let Poll::Ready(chunk) = response.poll_chunk(cx) else {
                let is_text =
                    matches!(self.facts.back(), Some(StreamEvent::Text(_) | StreamEvent::Reasoning(_)));
                if is_text && call.watch.is_burst() && self.rounds < MOST_ROUNDS {
                    return self.give_way(cx);
                }
                if !self.facts.is_empty() {
                    break;
                }
                let notice = ready!(call.watch.poll_notice(cx));
                return Poll::Ready(self.take_notice(Some(notice)));
            };
            if let Err(failure) = self.take_chunk(chunk) {
                return Poll::Ready(Err(failure));
            }
            let text = match self.facts.back() {
                Some(StreamEvent::Text(text) | StreamEvent::Reasoning(text)) => text.len(),
                _ => 0,
            };
            if self.facts.len() >= MOST_FACTS || text >= MOST_TEXT {
                break;
            }
        }
        self.rounds = 0;
        Poll::Ready(Ok(()))
    }

    /// Yields to other tasks before this one is polled again, because the task that reads from the socket hands over
    /// one piece at a time.
    fn give_way(&mut self, cx: &Context<'_>) -> Poll<Result<(), Failure>> {
        self.rounds += 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn take_chunk(&mut self, chunk: Result<Option<Bytes>, ConnectionError>) -> Result<(), Failure> {
        let Phase::Reading(_, call) = &mut self.phase else { return Ok(()) };
        let Call { watch, body } = &mut **call;
        let chunk = chunk.map_err(|fault| self.endpoint.lost(&fault, Some(&body.head)))?;
        let said = body.reader.said();
        let reading = match (&chunk, &body.opening) {
            (Some(chunk), _) => body.take(chunk, &mut self.facts),
            (None, Some(opening)) => return Err(self.endpoint.refused(&body.head, opening)),
            (None, None) => body.end(&mut self.facts).map(|()| Reading::Complete),
        };
        match reading {
            Ok(Reading::More) => {
                self.facts.extend(body.grown().map(StreamEvent::Collected));
                let notice = watch.heard(body.reader.said() != said);
                self.take_notice(notice)
            }
            Ok(Reading::Complete) => {
                if let Phase::Reading(response, _) = mem::replace(&mut self.phase, Phase::Over) {
                    (self.phase, self.rounds) = (Phase::Ending(response), 0);
                }
                Ok(())
            }
            Err(Flaw::Payload(payload)) => Err(self.endpoint.broken(&body.head, &payload)),
            Err(Flaw::Truncated(what)) => Err(self.endpoint.truncated(what, &body.head)),
            Err(Flaw::Excess(what)) => Err(Failure::new(Category::InvalidResponse, false, what)),
        }
    }

    /// Waits briefly for the end of the body, which usually follows the answer directly. Otherwise leaves it to a
    /// background task.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Phase::Ending(response) = &mut self.phase else { return Poll::Ready(Ok(())) };
        match response.poll_chunk(cx) {
            Poll::Ready(Ok(None) | Err(_)) => self.phase = Phase::Over,
            _ if self.rounds < MOST_ENDING => return self.give_way(cx),
            _ => {
                if let Phase::Ending(response) = mem::replace(&mut self.phase, Phase::Over) {
                    response.release();
                }
            }
        }
        Poll::Ready(Ok(()))
    }

    /// Handles a notice of the watch: yields a silence, or fails with its error.
    fn take_notice(&mut self, notice: Option<Notice>) -> Result<(), Failure> {
        let head = match &self.phase {
            Phase::Reading(_, call) => Some(&call.body.head),
            _ => None,
        };
        match notice {
            None => {}
            Some(Notice::Silent(silence)) => self.facts.push_back(StreamEvent::Silent(silence)),
            Some(Notice::Over(fault)) => return Err(self.endpoint.lost(&fault, head)),
        }
        Ok(())
    }
}

impl<R: Reader> Body<R> {
    pub(crate) fn new(reader: R, event_limit: usize) -> Self {
        Self {
            reader,
            decoder: SseDecoder::new(event_limit),
            surrogates: Surrogates::default(),
            head: Head::default(),
            opening: Some(Vec::new()),
            reported: 0,
        }
    }

    /// Handles the clean end of the stream. Fails if the body ended with an error that is not an event.
    pub(crate) fn end(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        let stray = self.decoder.stray();
        if is_error(&stray) {
            return Err(Flaw::Payload(stray.into_owned()));
        }
        self.reader.end(facts)
    }

    /// Returns by how much the memory held has grown, if it is worth reporting.
    fn grown(&mut self) -> Option<usize> {
        let held = self.decoder.held() + self.reader.collected();
        let grown = held.checked_sub(self.reported + REPORTED)?;
        self.reported = held;
        Some(grown + REPORTED)
    }

    pub(crate) fn take(&mut self, chunk: &[u8], facts: &mut Facts) -> Result<Reading, Flaw> {
        if let Some(opening) = &mut self.opening {
            let room = BODY_LIMIT - opening.len();
            opening.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        let mut rest = chunk;
        loop {
            match self.decoder.next(&mut rest) {
                Ok(None) => return Ok(Reading::More),
                Ok(Some(mut event)) => {
                    self.opening = None;
                    event.data = self.surrogates.join(event.data);
                    if is_bulky(&event.data) {
                        return Err(Flaw::Excess(format!(
                            "an event of the stream has more than {MOST_VALUES} JSON values"
                        )));
                    }
                    if self.reader.event(&event, facts)? == Reading::Complete {
                        return Ok(Reading::Complete);
                    }
                }
                Err(excess) => return Err(Flaw::Excess(excess.to_string())),
            }
        }
    }
}

/// Whether a text is JSON labelled as an error.
pub(crate) fn is_error(text: &str) -> bool {
    let names_one = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
    match serde_json::from_str(text) {
        Ok(Value::Array(items)) => items.iter().any(names_one),
        Ok(value) => names_one(&value),
        Err(_) => false,
    }
}
