//! One provider call: a request, its response, and the facts read from it.

#[cfg(any(test, feature = "replay"))]
pub(crate) mod replay;

use std::{collections::VecDeque, mem, sync::Arc};

use everturn_kernel::StreamEvent;
use everturn_wire::{Category, Failure, Value};
use futures_core::{future::BoxFuture, stream::BoxStream};
use futures_util::{StreamExt as _, stream};
use reqwest::Request;
use tokio::select;

use crate::{
    SseDecoder, SseEvent,
    bulk::{MOST_VALUES, is_bulky},
    endpoint::{Endpoint, Head},
    http::{BODY_LIMIT, ConnectionError, Notice, Response, Watch},
};

/// What was read and not yet handed on.
pub(crate) type Facts = VecDeque<StreamEvent>;

/// Reads the events of one API's streams.
pub(crate) trait Reader: Send + 'static {
    /// Takes an event. After [`Reading::Complete`], or a flaw, nothing more is read.
    fn event(&mut self, event: &SseEvent<'_>, facts: &mut Facts) -> Result<Reading, Flaw>;

    /// The stream ended in good order.
    fn end(&mut self, facts: &mut Facts) -> Result<(), Flaw>;

    /// Moves on with all that is said of the answer, whether it is told at once or collected, and with nothing else.
    fn said(&self) -> usize;
}

/// Whether there is more to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    More,
    /// The terminal event came, and `Finished` is among the facts.
    Complete,
}

/// Why an answer cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Flaw {
    /// The provider says so, in this payload; or sent this, which is no answer.
    Payload(String),
    /// It stopped too early.
    Truncated(&'static str),
    /// It is more than the embedder allows.
    Excess(String),
}

/// Runs a call. Dropping the stream closes the connection.
pub(crate) fn run<R: Reader>(
    endpoint: Arc<Endpoint>,
    request: Request,
    body: Body<R>,
) -> BoxStream<'static, StreamEvent> {
    let phase = Phase::New(Box::new(request), Box::new(body));
    let exchange = Exchange { endpoint, facts: Facts::new(), phase };
    stream::unfold(exchange, |mut exchange| async move {
        let fact = exchange.next().await?;
        Some((fact, exchange))
    })
    .boxed()
}

struct Exchange<R> {
    endpoint: Arc<Endpoint>,
    facts: Facts,
    phase: Phase<R>,
}

/// Boxed: it is moved with every piece that is read.
enum Phase<R> {
    /// Nobody has asked for a fact yet, and nothing was sent.
    New(Box<Request>, Box<Body<R>>),
    /// The response's head is awaited.
    Asking(BoxFuture<'static, Result<Response, ConnectionError>>, Box<Call<R>>),
    /// The body's next piece is awaited.
    Reading(Box<Response>, Box<Call<R>>),
    Over,
}

/// What a call has from its first request to its last byte.
struct Call<R> {
    watch: Watch,
    body: Body<R>,
}

/// A body as a stream of events.
pub(crate) struct Body<R> {
    reader: R,
    decoder: SseDecoder,
    head: Head,
    /// The beginning of the body until an event is found in it: what has none may be an error in plain JSON.
    opening: Option<Vec<u8>>,
}

impl<R: Reader> Exchange<R> {
    async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            if let Some(fact) = self.facts.pop_front() {
                return Some(fact);
            }
            let step = match mem::replace(&mut self.phase, Phase::Over) {
                Phase::New(request, body) => {
                    let http = self.endpoint.http();
                    let watch = Watch::begin(http.timeouts());
                    Ok(Phase::Asking(http.send(*request), Box::new(Call { watch, body: *body })))
                }
                Phase::Asking(response, call) => self.ask(response, call).await,
                Phase::Reading(response, call) => self.read(response, call).await,
                Phase::Over => return None,
            };
            match step {
                Ok(phase) => self.phase = phase,
                Err(failure) => self.facts.push_back(StreamEvent::Failed(failure)),
            }
        }
    }

    async fn ask(
        &mut self,
        mut asked: BoxFuture<'static, Result<Response, ConnectionError>>,
        mut call: Box<Call<R>>,
    ) -> Result<Phase<R>, Failure> {
        let response = select! {
            biased;
            response = &mut asked => response,
            notice = call.watch.notice() => {
                self.take_notice(Some(notice), None)?;
                return Ok(Phase::Asking(asked, call));
            }
        };
        let mut response = response.map_err(|fault| self.endpoint.lost(&fault, None))?;
        call.body.head = Head::from(&response);
        self.facts.extend(Endpoint::quota(&call.body.head).map(StreamEvent::Quota));
        if (200..300).contains(&response.status()) {
            let notice = call.watch.answered();
            self.take_notice(notice, Some(&call.body.head))?;
            return Ok(Phase::Reading(Box::new(response), call));
        }
        let explanation = response.body().await;
        Err(self.endpoint.refused(&call.body.head, &explanation))
    }

    async fn read(
        &mut self,
        mut response: Box<Response>,
        mut call: Box<Call<R>>,
    ) -> Result<Phase<R>, Failure> {
        let Call { watch, body } = &mut *call;
        let chunk = select! {
            biased;
            chunk = response.chunk() => chunk,
            notice = watch.notice() => {
                self.take_notice(Some(notice), Some(&body.head))?;
                return Ok(Phase::Reading(response, call));
            }
        };
        let chunk = chunk.map_err(|fault| self.endpoint.lost(&fault, Some(&body.head)))?;
        let said = body.reader.said();
        let reading = match (&chunk, &body.opening) {
            (Some(chunk), _) => body.take(chunk, &mut self.facts),
            (None, Some(opening)) => return Err(self.endpoint.refused(&body.head, opening)),
            (None, None) => body.end(&mut self.facts).map(|()| Reading::Complete),
        };
        match reading {
            Ok(Reading::More) => {
                let notice = watch.heard(body.reader.said() != said);
                self.take_notice(notice, Some(&body.head))?;
                Ok(Phase::Reading(response, call))
            }
            Ok(Reading::Complete) => {
                response.release();
                Ok(Phase::Over)
            }
            Err(Flaw::Payload(payload)) => Err(self.endpoint.broken(&body.head, &payload)),
            Err(Flaw::Truncated(what)) => Err(self.endpoint.truncated(what, &body.head)),
            Err(Flaw::Excess(what)) => Err(Failure::new(Category::InvalidResponse, false, what)),
        }
    }

    /// Tells a silence, or fails with what the watch gave up for. `head`: of the response, once it has begun.
    fn take_notice(&mut self, notice: Option<Notice>, head: Option<&Head>) -> Result<(), Failure> {
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
            head: Head::default(),
            opening: Some(Vec::new()),
        }
    }

    /// The stream ended in good order, unless its last words are an error that is no event.
    fn end(&mut self, facts: &mut Facts) -> Result<(), Flaw> {
        let stray = self.decoder.stray();
        if is_error(&stray) {
            return Err(Flaw::Payload(stray.into_owned()));
        }
        self.reader.end(facts)
    }

    fn take(&mut self, chunk: &[u8], facts: &mut Facts) -> Result<Reading, Flaw> {
        if let Some(opening) = &mut self.opening {
            let room = BODY_LIMIT - opening.len();
            opening.extend_from_slice(&chunk[..chunk.len().min(room)]);
        }
        let mut rest = chunk;
        loop {
            match self.decoder.next(&mut rest) {
                Ok(None) => return Ok(Reading::More),
                Ok(Some(event)) => {
                    self.opening = None;
                    if is_bulky(&event.data) {
                        return Err(Flaw::Excess(format!(
                            "an event of the stream has more than {MOST_VALUES} JSON values: no answer needs so many"
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

/// Whether a text is JSON that calls itself an error.
fn is_error(text: &str) -> bool {
    let names_one = |value: &Value| value.get("error").is_some_and(|error| !error.is_null());
    match serde_json::from_str(text) {
        Ok(Value::Array(items)) => items.iter().any(names_one),
        Ok(value) => names_one(&value),
        Err(_) => false,
    }
}
