//! One socket: a loop that reads commands and sends events.

use axum::extract::ws::{Message, WebSocket};
use everturn_orchestrator::Orchestrator;
use futures_util::{StreamExt as _, future::join, stream::SplitStream};
use tokio::time::{Duration, Instant, sleep_until, timeout};
use tungstenite::{Error, error::ProtocolError, protocol::frame::coding::CloseCode};

use crate::{
    SocketLimits,
    feeds::Feeds,
    message,
    outbox::{Outbox, Stuck},
    sockets::DROPPED,
    task::Done,
    under_way::UnderWay,
    watch::Watches,
};

/// Maximum duration of the closing handshake.
const LAST_WORDS: Duration = Duration::from_secs(1);
const SHUTTING_DOWN: &str = "the server is shutting down: come back with the last cursor";

/// One socket.
pub(crate) struct Socket {
    source: SplitStream<WebSocket>,
    outbox: Outbox,
    watches: Watches,
    feeds: Feeds,
    orchestrator: Orchestrator,
    under_way: UnderWay,
    limits: SocketLimits,
    /// When the peer was last heard.
    heard: Instant,
    /// Whether the peer was silent and has been pinged.
    pinged: bool,
}

/// Something that happens to a socket.
enum Event {
    Heard(Option<Result<Message, axum::Error>>),
    /// A command has ended.
    Done(Done),
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
    /// The server is shutting down.
    Down,
}

impl Socket {
    pub(crate) fn new(socket: WebSocket, orchestrator: Orchestrator, limits: SocketLimits) -> Self {
        let (sink, source) = socket.split();
        Self {
            source,
            outbox: Outbox::new(sink, limits.send_timeout),
            watches: Watches::default(),
            feeds: Feeds::new(orchestrator.clone()),
            under_way: UnderWay::new(orchestrator.clone(), limits),
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
            End::Down => vec![message::close(CloseCode::Away.into(), SHUTTING_DOWN)],
            End::Broke(error) => {
                let (code, why) = (u16::from(code(&error)), error.to_string());
                vec![message::error(&why), message::close(code, &why)]
            }
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

    async fn event(&mut self) -> Event {
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
            pumped = self.outbox.pump(&mut self.watches, &mut self.feeds) => match pumped {
                Ok(()) => Event::Answered,
                Err(stuck) => Event::Stuck(stuck),
            },
            () = self.orchestrator.down() => Event::Down,
            () = sleep_until(room_at.unwrap_or(quiet_at)), if room_at.is_some() => Event::Room,
            // A ping must not take the place of a pending answer. Until that is sent, the outbox's timeout applies.
            () = sleep_until(quiet_at), if self.outbox.has_room() => Event::Quiet,
        }
    }

    async fn handle(&mut self, event: Event) -> Result<(), End> {
        match event {
            Event::Heard(Some(Ok(message))) => {
                (self.heard, self.pinged) = (Instant::now(), false);
                self.hear(message)
            }
            Event::Heard(Some(Err(error))) => Err(broken(error)),
            Event::Heard(None) | Event::Stuck(Stuck::Gone) => Err(End::Left),
            Event::Stuck(Stuck::Slow) => Err(End::Slow),
            Event::Done(done) => {
                if let Some(answer) = self.under_way.end(done, &mut self.watches) {
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
            Message::Text(text) => self.under_way.begin(&text, &self.watches),
            Message::Binary(_) => Some(message::error("send commands as text frames, not as binary ones")),
            // The WebSocket library answers it.
            Message::Ping(_) => {
                self.outbox.owes_pong();
                None
            }
            Message::Pong(_) => None,
            Message::Close(_) => return Err(End::Left),
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
