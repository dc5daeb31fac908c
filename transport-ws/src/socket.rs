//! One socket: a loop that reads commands and sends events.

use axum::extract::ws::{Message, WebSocket};
use everturn_orchestrator::View;
use futures_util::{StreamExt as _, future::join, stream::SplitStream};
use tokio::time::{Duration, Instant, sleep_until, timeout};
use tungstenite::{Error, error::ProtocolError, protocol::frame::coding::CloseCode};

use crate::{
    SocketLimits, message,
    outbox::{Outbox, Stuck},
    protocol::Protocol,
    under_way::{Done, UnderWay},
};

pub(crate) const DROPPED: &str = "everturn_websockets_dropped_total";

/// Maximum duration of the closing handshake.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One socket.
pub(crate) struct Socket<P: Protocol> {
    source: SplitStream<WebSocket>,
    outbox: Outbox,
    news: P::News,
    orchestrator: View,
    under_way: UnderWay<P>,
    limits: SocketLimits,
    /// When the peer was last heard.
    heard: Instant,
    /// Whether the peer was silent and has been pinged.
    pinged: bool,
}

/// Something that happens to a socket.
enum Event<P: Protocol> {
    Heard(Option<Result<Message, axum::Error>>),
    /// A command has ended.
    Done(Done<P>),
    /// There is room for another command.
    Room,
    /// The last answer is being sent, so there is room for another; or there are events to join.
    Answered,
    Stuck(Stuck),
    /// The peer was silent for a while.
    Quiet,
    /// The server is shutting down, and the peer was sent everything it accepts.
    Down,
}

/// Why a socket ends.
enum End {
    /// The peer closed it, or is gone.
    Left,
    /// It takes too long for what it is sent.
    Slow,
    /// It no longer answers.
    Dead,
    /// It violated the protocol or a limit.
    Broke(Error),
    /// The peer sent something that cannot be understood or answered.
    Confused(String),
    /// The server is shutting down.
    Down,
}

impl<P: Protocol> Socket<P> {
    pub(crate) fn new(socket: WebSocket, orchestrator: View, protocol: P, limits: SocketLimits) -> Self {
        let (sink, source) = socket.split();
        Self {
            source,
            outbox: Outbox::new(sink, limits.send_timeout),
            news: protocol.news(),
            under_way: UnderWay::new(protocol, limits),
            orchestrator,
            limits,
            heard: Instant::now(),
            pinged: false,
        }
    }

    /// Serves the peer until it leaves or must be disconnected. Turns are not affected.
    pub(crate) async fn run(mut self) {
        let end = loop {
            let event = self.event().await;
            if let Err(end) = self.handle(event).await {
                break end;
            }
        };
        drop(self.under_way);
        let last = match end {
            End::Left => Vec::new(),
            End::Down => vec![message::close(CloseCode::Away.into(), P::GOODBYE)],
            End::Broke(error) => {
                let (code, why) = (u16::from(code(&error)), error.to_string());
                P::complaint(&why).into_iter().chain([message::close(code, &why)]).collect()
            }
            End::Confused(why) => vec![message::close(CloseCode::Policy.into(), &why)],
            End::Slow | End::Dead => {
                let reason = if matches!(end, End::Slow) { "slow" } else { "dead" };
                metrics::counter!(DROPPED, "reason" => reason).increment(1);
                tracing::info!(reason, "a socket was dropped");
                return;
            }
        };
        let end = self.outbox.end(last);
        let gone = async { while let Some(Ok(_)) = self.source.next().await {} };
        // If the connection were dropped before the peer has read the close frame, that frame might be lost.
        let _ = timeout(LAST_WORDS, join(end, gone)).await;
    }

    async fn event(&mut self) -> Event<P> {
        self.outbox.gather().await;
        let quiet_at = self.heard + self.limits.ping_every * if self.pinged { 2 } else { 1 };
        let room_at = self.under_way.room_at();
        tokio::select! {
            // A stop must get through however many events are pending.
            biased;
            // A finished command may need an answer. Unfinished ones continue meanwhile.
            done = self.under_way.next(), if self.outbox.has_room() => Event::Done(done),
            heard = self.source.next(), if self.outbox.has_room() && self.under_way.has_room() => {
                Event::Heard(heard)
            }
            pumped = self.outbox.pump(&mut self.news) => match pumped {
                Ok(()) => Event::Answered,
                Err(stuck) => Event::Stuck(stuck),
            },
            () = self.orchestrator.down() => Event::Down,
            () = sleep_until(room_at.unwrap_or(quiet_at)), if room_at.is_some() => Event::Room,
            // A ping must not take the place of a pending answer. Until that is sent, the outbox's timeout applies.
            () = sleep_until(quiet_at), if self.outbox.has_room() => Event::Quiet,
        }
    }

    async fn handle(&mut self, event: Event<P>) -> Result<(), End> {
        match event {
            Event::Heard(Some(Ok(message))) => {
                (self.heard, self.pinged) = (Instant::now(), false);
                self.hear(message)
            }
            Event::Heard(Some(Err(error))) => Err(broken(error)),
            Event::Heard(None) | Event::Stuck(Stuck::Gone) => Err(End::Left),
            Event::Stuck(Stuck::Slow) => Err(End::Slow),
            Event::Done(done) => {
                if let Some(answer) = self.under_way.end(done, &mut self.news) {
                    self.outbox.answer(answer);
                }
                Ok(())
            }
            Event::Answered | Event::Room => Ok(()),
            Event::Down => Err(End::Down),
            Event::Quiet if self.pinged => Err(End::Dead),
            Event::Quiet => {
                self.pinged = true;
                self.outbox.answer(Message::Ping(Default::default()));
                Ok(())
            }
        }
    }

    fn hear(&mut self, message: Message) -> Result<(), End> {
        let answer = match message {
            Message::Text(text) => self.under_way.begin(&text, &mut self.news),
            Message::Binary(_) => Err("send text frames, not binary ones".to_owned()),
            // The WebSocket library answers it.
            Message::Ping(_) => {
                self.outbox.owes_pong();
                Ok(None)
            }
            Message::Pong(_) => Ok(None),
            Message::Close(_) => return Err(End::Left),
        };
        let answer = match answer {
            Ok(answer) => answer,
            Err(why) => Some(P::complaint(&why).ok_or(End::Confused(why))?),
        };
        if let Some(answer) = answer {
            self.outbox.answer(answer);
        }
        Ok(())
    }
}

/// Returns why the socket ends, given the error of a read.
fn broken(error: axum::Error) -> End {
    match error.into_inner().downcast::<Error>().map(|error| *error) {
        Ok(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake)) | Err(_) => End::Left,
        Ok(error @ (Error::Protocol(_) | Error::Utf8(_) | Error::Capacity(_))) => End::Broke(error),
        Ok(_) => End::Left,
    }
}

fn code(error: &Error) -> CloseCode {
    match error {
        Error::Utf8(_) => CloseCode::Invalid,
        Error::Capacity(_) => CloseCode::Size,
        _ => CloseCode::Protocol,
    }
}
