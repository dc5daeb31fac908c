//! One exchange that is passed through: a request, its response, and what the turn learns from it.

use std::{
    collections::VecDeque,
    mem,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use everturn_kernel::{FinishReason, StreamEvent};
use everturn_wire::Failure;
use futures_core::{Stream, future::BoxFuture};
use hyper::{
    HeaderMap, StatusCode,
    header::{CONTENT_ENCODING, CONTENT_TYPE},
};
use serde::de::IgnoredAny;

use super::{
    AnswerForm, RelayEvent,
    content::{Said, is_failed, said},
    header, refusal,
    unpack::Unpack,
    usage::Ends,
};
use crate::{
    SseDecoder, Timeouts,
    endpoint::{Endpoint, Head},
    exchange::is_error,
    http::{BODY_LIMIT, Notice, Request, Response, Sending, Watch},
    secret::Veil,
};

/// Maximum number of bytes of an answer that is held back: of a stream before its content, and of one that is passed on
/// only as a whole. From there on it counts as content, and is passed on.
const MOST_PRELUDE: usize = 1 << 20;
const MOST_WHOLE: usize = 64 << 20;

/// Maximum size of the body of a refusal, in bytes.
const MOST_REFUSAL: usize = 16 << 20;

pub(super) struct Exchange {
    endpoint: Arc<Endpoint>,
    form: AnswerForm,
    whole: bool,
    /// The caller's credentials, which no failure may quote.
    credentials: Vec<String>,
    watch: Watch,
    /// Events that were read and not yet yielded.
    events: VecDeque<RelayEvent>,
    phase: Phase,
}

enum Phase {
    /// Not polled yet; nothing has been sent.
    New(Box<Request>),
    /// Waiting for the response headers.
    Asking(Sending),
    /// Waiting for the next piece of the body.
    Reading(Box<Response>, Box<Reading>),
    /// Waiting for the rest of an answer that is a failure.
    Failing(BoxFuture<'static, Vec<Bytes>>, Box<Failing>),
    Over,
}

/// The part of an answer that is read.
struct Reading {
    head: Head,
    /// Finds the events of a stream that can be read.
    events: Option<SseDecoder>,
    /// Whether content has begun; the rest is passed on unread.
    has_begun: bool,
    /// The most that an event has said.
    said: Option<Said>,
    /// Number of bytes held back so far.
    held: usize,
    /// Reads it, if it is compressed.
    unpack: Unpack,
    /// Where its token counts are.
    ends: Ends,
    /// The start of a body without events, which may be an error.
    opening: Vec<u8>,
    /// What a body without events is said to be.
    kind: Kind,
    may_be_empty: bool,
}

/// What a body is said to be.
enum Kind {
    Json,
    Plain,
    /// HTML: no answer of an API, but perhaps a page of a proxy.
    Page,
    Other,
}

/// A failure whose explanation is still arriving.
enum Failing {
    /// The provider refused the request, and the body says why.
    Refused(Head, StatusCode, HeaderMap),
    /// It said so in the stream.
    InStream(Failure),
}

impl Exchange {
    pub(super) fn new(
        endpoint: Arc<Endpoint>,
        request: Request,
        timeouts: Timeouts,
        form: AnswerForm,
        whole: bool,
        credentials: Vec<String>,
    ) -> Self {
        let (watch, phase) = (Watch::begin(timeouts), Phase::New(Box::new(request)));
        Self { endpoint, form, whole, credentials, watch, events: VecDeque::new(), phase }
    }

    fn begin(&mut self, request: Request) {
        self.phase = Phase::Asking(self.endpoint.http().send(request));
    }

    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Phase::Asking(sending) = &mut self.phase else { return Poll::Ready(Ok(())) };
        let Poll::Ready(response) = Pin::new(sending).poll(cx) else {
            let notice = ready!(self.watch.poll_notice(cx));
            return Poll::Ready(self.take_notice(Some(notice), None));
        };
        Poll::Ready(match response {
            Ok(response) => self.take_head(response),
            Err(fault) => Err(self.endpoint.lost(&fault, None)),
        })
    }

    fn take_head(&mut self, mut response: Response) -> Result<(), Failure> {
        let status = StatusCode::from_u16(response.status()).unwrap_or(StatusCode::BAD_GATEWAY);
        let mut headers = response.headers_mut().clone();
        header::strip_connection(&mut headers);
        let of = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let (kind, unpack) = (of(CONTENT_TYPE).to_owned(), Unpack::of(of(CONTENT_ENCODING)));
        let head = Head::of(&mut response);
        if !status.is_success() {
            self.events.extend(head.limits().map(StreamEvent::Limits).map(RelayEvent::Fact));
            let body = Box::pin(async move { response.rest(MOST_REFUSAL).await });
            self.phase = Phase::Failing(body, Box::new(Failing::Refused(head, status, headers)));
            return Ok(());
        }
        self.events.push_back(RelayEvent::Head(status, headers));
        self.events.extend(head.limits().map(StreamEvent::Limits).map(RelayEvent::Fact));
        let is_kind = |asked: &str| kind.trim_start().to_ascii_lowercase().starts_with(asked);
        let is_read = unpack.is_readable();
        let is_stream = is_kind("text/event-stream");
        let reading = Reading {
            head,
            events: (is_stream && is_read).then(|| SseDecoder::new(MOST_PRELUDE)),
            // What cannot be read is content.
            has_begun: is_stream && !is_read && !self.whole,
            said: None,
            held: 0,
            unpack,
            ends: Ends::default(),
            opening: Vec::new(),
            kind: match () {
                () if is_kind("application/json") => Kind::Json,
                () if is_kind("text/plain") => Kind::Plain,
                () if is_kind("text/html") => Kind::Page,
                () => Kind::Other,
            },
            may_be_empty: status != StatusCode::OK,
        };
        if reading.has_begun || (self.form == AnswerForm::Opaque && !self.whole) {
            self.begin_content(reading, response);
        } else {
            self.phase = Phase::Reading(Box::new(response), Box::new(reading));
        }
        let notice = self.watch.answered();
        self.take_notice(notice, None)
    }

    fn begin_content(&mut self, reading: Reading, response: Response) {
        self.events.push_back(RelayEvent::Fact(StreamEvent::Opaque));
        let reading = Reading { has_begun: true, ..reading };
        self.phase = Phase::Reading(Box::new(response), Box::new(reading));
    }

    fn poll_body(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Phase::Reading(response, reading) = &mut self.phase else { return Poll::Ready(Ok(())) };
        let Poll::Ready(chunk) = response.poll_chunk(cx) else {
            let notice = ready!(self.watch.poll_notice(cx));
            let head = reading.head.clone();
            return Poll::Ready(self.take_notice(Some(notice), Some(&head)));
        };
        Poll::Ready(match chunk {
            Ok(Some(chunk)) => self.take_piece(chunk),
            Ok(None) => self.take_end(),
            Err(fault) => Err(self.endpoint.lost(&fault, Some(&reading.head))),
        })
    }

    fn take_piece(&mut self, piece: Bytes) -> Result<(), Failure> {
        let Phase::Reading(_, reading) = &mut self.phase else { return Ok(()) };
        let had_begun = reading.has_begun;
        let said = reading.unpack.take(&piece);
        let (is_last, usage) = reading.ends.take(self.form, &said);
        reading.held += piece.len();
        let found = if had_begun { Ok(true) } else { reading.take(&said, self.form, self.whole) };
        // Both before their piece, so that nobody leaves between them.
        self.events.extend(is_last.then_some(RelayEvent::LastIsNext));
        if reading.has_begun {
            self.events.extend(usage.map(StreamEvent::Usage).map(RelayEvent::Fact));
        }
        let begins = !had_begun && reading.has_begun;
        // A failing event belongs to the answer, in case it is passed on after all.
        self.events.push_back(RelayEvent::Piece(self.endpoint.veil().whole().overwrite(piece)));
        match found {
            Ok(progress) => {
                self.events.extend(begins.then_some(RelayEvent::Fact(StreamEvent::Opaque)));
                let notice = self.watch.heard(progress);
                self.take_notice(notice, None)
            }
            Err(payload) => {
                self.take_failure(&payload);
                Ok(())
            }
        }
    }

    /// Handles an error in the stream: the rest of the answer is awaited briefly.
    fn take_failure(&mut self, payload: &str) {
        if let Phase::Reading(mut response, reading) = mem::replace(&mut self.phase, Phase::Over) {
            let failure = self.endpoint.broken(&reading.head, payload);
            let rest = Box::pin(async move { response.rest_of_stream(BODY_LIMIT).await });
            self.phase = Phase::Failing(rest, Box::new(Failing::InStream(failure)));
        }
    }

    /// Handles the proper end of the body.
    fn take_end(&mut self) -> Result<(), Failure> {
        let Phase::Reading(_, reading) = mem::replace(&mut self.phase, Phase::Over) else { return Ok(()) };
        if !reading.has_begun {
            match &reading.events {
                Some(events) if is_error(&events.stray()) => {
                    return Err(self.endpoint.broken(&reading.head, &events.stray()));
                }
                // A stream that is not of this API is complete when its body is.
                Some(_) if !matches!(reading.said, Some(Said::Unknown | Said::End)) => {
                    let what =
                        if reading.held == 0 { "the body is empty" } else { "the stream ended too early" };
                    return Err(self.endpoint.truncated(what, &reading.head));
                }
                None if self.form != AnswerForm::Opaque => reading.check(&self.endpoint, self.form)?,
                _ => {}
            }
            self.events.push_back(RelayEvent::Fact(StreamEvent::Opaque));
        }
        let usage = reading.ends.usage(self.form);
        self.events.extend(usage.map(StreamEvent::Usage).map(RelayEvent::Fact));
        self.events.push_back(RelayEvent::Fact(StreamEvent::Finished(FinishReason::Stop)));
        Ok(())
    }

    fn poll_failing(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        let Phase::Failing(rest, _) = &mut self.phase else { return Poll::Ready(Ok(())) };
        let mut rest = ready!(rest.as_mut().poll(cx));
        let Phase::Failing(_, failing) = mem::replace(&mut self.phase, Phase::Over) else {
            return Poll::Ready(Ok(()));
        };
        let failure = match *failing {
            Failing::InStream(failure) => {
                rest = refusal::clean_body(self.endpoint.veil(), rest, BODY_LIMIT);
                failure
            }
            Failing::Refused(head, status, headers) => {
                let (headers, body, said) = refusal::clean(self.endpoint.veil(), headers, rest, BODY_LIMIT);
                self.events.push_back(RelayEvent::Head(status, headers));
                rest = body;
                self.endpoint.refused(&head, &said)
            }
        };
        self.events.extend(rest.into_iter().map(RelayEvent::Piece));
        Poll::Ready(Err(failure))
    }

    /// Handles a notice of the watch: yields a silence, or fails with its error.
    fn take_notice(&mut self, notice: Option<Notice>, head: Option<&Head>) -> Result<(), Failure> {
        match notice {
            None => Ok(()),
            Some(Notice::Silent(silence)) => {
                self.events.push_back(RelayEvent::Fact(StreamEvent::Silent(silence)));
                Ok(())
            }
            Some(Notice::Over(fault)) => Err(self.endpoint.lost(&fault, head)),
        }
    }

    /// Ends the exchange. No failure quotes the caller's credential.
    fn fail(&mut self, mut failure: Failure) {
        if let Phase::Reading(..) = mem::replace(&mut self.phase, Phase::Over) {
            self.events.push_back(RelayEvent::Cut);
        }
        let mut veil = Veil::default();
        self.credentials.iter().for_each(|credential| veil.add(credential));
        veil.hide_in(&mut failure.message);
        if let Some(code) = &mut failure.provider_code {
            veil.hide_in(code);
        }
        self.events.push_back(RelayEvent::Fact(StreamEvent::Failed(failure)));
    }
}

/// Whether a text is neither JSON, whole or in lines, nor a stream of events.
fn is_prose(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let begins = ["{", "[", "\"", ":", "data:", "event:", "id:", "retry:"];
    !begins.iter().any(|begin| text.starts_with(begin))
}

impl Reading {
    /// Checks a body without events, as far as it can be read and was kept.
    fn check(&self, endpoint: &Endpoint, form: AnswerForm) -> Result<(), Failure> {
        let Self { head, opening, kind, .. } = self;
        if let Kind::Page = kind {
            return Err(endpoint.refused(head, opening));
        }
        if self.held == 0 && !self.may_be_empty {
            return Err(endpoint.truncated("the body is empty", head));
        }
        if self.held == 0 || !self.unpack.is_readable() || opening.len() >= BODY_LIMIT {
            return Ok(());
        }
        let text = String::from_utf8_lossy(opening);
        if is_failed(form, &text) {
            return Err(endpoint.broken(head, &text));
        }
        match (serde_json::from_str::<IgnoredAny>(&text), kind) {
            (Err(error), Kind::Json) if error.is_eof() => {
                Err(endpoint.truncated("the JSON ended too early", head))
            }
            // What a proxy says in words. A stream or JSON may be called so, too.
            (Err(_), Kind::Plain) if is_prose(&text) => Err(endpoint.refused(head, opening)),
            _ => Ok(()),
        }
    }

    /// Reads a piece of an answer that is held back. Returns whether it makes progress, or the payload of an error.
    fn take(&mut self, piece: &[u8], form: AnswerForm, whole: bool) -> Result<bool, String> {
        let room = BODY_LIMIT - self.opening.len();
        let is_held_whole = whole || self.events.is_none();
        self.has_begun = self.held > if is_held_whole { MOST_WHOLE } else { MOST_PRELUDE };
        let Some(events) = &mut self.events else {
            self.opening.extend_from_slice(&piece[..piece.len().min(room)]);
            return Ok(true);
        };
        let (mut rest, mut progress) = (piece, false);
        loop {
            let event = match events.next(&mut rest) {
                Ok(Some(event)) => event,
                Ok(None) => return Ok(progress),
                // Too large to be a prelude, or to be read.
                Err(_) => {
                    self.has_begun = true;
                    return Ok(true);
                }
            };
            let said = said(form, &event);
            self.said = self.said.max(Some(said));
            match said {
                Said::Nothing => {}
                Said::Failure => return Err(event.data.into_owned()),
                Said::Unknown | Said::Content | Said::End => {
                    progress = true;
                    self.has_begun |= !whole;
                    if self.has_begun {
                        return Ok(true);
                    }
                }
            }
        }
    }
}

impl Stream for Exchange {
    type Item = RelayEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<RelayEvent>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.events.pop_front() {
                return Poll::Ready(Some(event));
            }
            let polled = match &mut this.phase {
                Phase::New(request) => {
                    let request = mem::replace(&mut **request, Ok(hyper::Request::default()));
                    this.begin(request);
                    continue;
                }
                Phase::Asking(_) => this.poll_head(cx),
                Phase::Reading(..) => this.poll_body(cx),
                Phase::Failing(..) => this.poll_failing(cx),
                Phase::Over => return Poll::Ready(None),
            };
            if let Err(failure) = ready!(polled) {
                this.fail(failure);
            }
        }
    }
}
