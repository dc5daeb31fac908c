//! The connection to a server: answers pings, and reconnects automatically where it left off.

use std::time::Duration;

use anyhow::{Context as _, Result, anyhow, bail};
use everturn_wire::{Command, ConversationId, ErrorBody, EventBody, ServerMessage};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    net::TcpStream,
    sync::mpsc,
    time::{sleep, timeout},
};
use tokio_tungstenite::{
    MaybeTlsStream, WebSocketStream, connect_async,
    tungstenite::{
        self, Message,
        client::IntoClientRequest as _,
        http::{HeaderValue, header::AUTHORIZATION},
    },
};

use super::server::Server;
use crate::{
    Hidden,
    remote::{self, Address, Clock},
};

/// Number of attempts to reconnect, and the delay before the first; it doubles each time, up to the longest: 20 minutes in all. A turn may
/// wait for longer, but then the server is gone.
pub(super) const TRIES: u32 = 125;
/// Short in tests, which do not pause the clock: a paused one skips a deadline as soon as nothing is ready.
const FIRST_WAIT: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 250 });
const LONGEST_WAIT: Duration = Duration::from_millis(if cfg!(test) { 2 } else { 10_000 });

/// How long the server may take to answer a request for a connection.
const ANSWER_WITHIN: Duration = Duration::from_secs(15);

/// How long the connection may be silent before it counts as lost: the server pings every 25 s.
const MOST_SILENCE: Duration = Duration::from_secs(75);

/// Number of refusals that end this, if they may be those of a proxy before the server, which is about to begin: more than a minute.
const DENIALS: u32 = 12;

/// Capacity of the channels in both directions.
const PLACES: usize = 64;

type Socket = WebSocketStream<MaybeTlsStream<TcpStream>>;

/// An event on the connection.
#[derive(Debug)]
pub(super) enum News {
    /// A message from the server and, if requested, its event verbatim.
    Said(Box<ServerMessage>, Option<Box<RawValue>>),
    /// The connection is lost; this is the nth consecutive attempt to reconnect.
    Lost(u32),
    /// The connection is back and continues where it was.
    Back,
}

/// A connection to a server. Dropping it closes it.
pub(super) struct Link {
    commands: mpsc::Sender<Command>,
    news: mpsc::Receiver<Result<News>>,
    /// A received item to deliver again.
    kept: Option<News>,
    clock: Clock,
}

impl Link {
    /// Connects to a server. With `is_verbatim`, events are also kept as they were sent.
    pub(super) async fn open(server: &Server, is_verbatim: bool) -> Result<Self> {
        let (address, token) = (server.address.clone(), server.token.clone());
        let connected = connect(&address, token.as_ref()).await.map_err(|unconnected| unconnected.error);
        let (socket, clock) = connected?;
        let (commands, of_owner) = mpsc::channel(PLACES);
        let (to_owner, news) = mpsc::channel(PLACES);
        let (place, unconfirmed) = (None, false);
        let line = Line { address, token, socket, of_owner, to_owner, place, unconfirmed, is_verbatim };
        tokio::spawn(line.run());
        Ok(Self { commands, news, kept: None, clock })
    }

    /// The server's clock.
    pub(super) fn clock(&self) -> Clock {
        self.clock
    }

    /// Sends a command, after reconnecting if the connection is lost.
    pub(super) async fn send(&self, command: Command) -> Result<()> {
        self.commands.send(command).await.map_err(|_| anyhow!("the connection to the server is gone"))
    }

    /// Makes [`Self::next`] return this item again.
    pub(super) fn put_back(&mut self, news: News) {
        self.kept = Some(news);
    }

    /// The next item. Cancel-safe.
    ///
    /// # Errors
    /// When the connection cannot be restored.
    pub(super) async fn next(&mut self) -> Result<News> {
        if let Some(kept) = self.kept.take() {
            return Ok(kept);
        }
        self.news.recv().await.unwrap_or_else(|| Err(anyhow!("the connection to the server is gone")))
    }
}

/// The task's end of a link.
struct Line {
    address: Address,
    token: Option<Hidden>,
    socket: Socket,
    of_owner: mpsc::Receiver<Command>,
    to_owner: mpsc::Sender<Result<News>>,
    /// The conversation, and the cursor up to which its events were read.
    place: Option<(ConversationId, String)>,
    /// Whether a message was sent that the server has not confirmed yet.
    unconfirmed: bool,
    is_verbatim: bool,
}

/// The event in a message, as it was sent.
#[derive(Deserialize)]
struct Verbatim {
    event: Option<Box<RawValue>>,
}

impl Line {
    async fn run(mut self) {
        // Fails when the server is gone; succeeds when the owner is.
        let end = loop {
            match self.relay().await {
                Ok(Connection::Lost) => {}
                Ok(Connection::Unwanted) => break Ok(()),
                Err(error) => break Err(error),
            }
            if let Err(error) = self.reopen().await {
                break Err(error);
            }
        };
        match end {
            Ok(()) => drop(self.socket.close(None).await),
            // Fails if the owner is gone, too.
            Err(error) => drop(self.to_owner.send(Err(error)).await),
        }
    }

    /// Relays commands and messages until the connection is lost or the owner is gone.
    async fn relay(&mut self) -> Result<Connection> {
        loop {
            tokio::select! {
                command = self.of_owner.recv() => {
                    let Some(command) = command else { return Ok(Connection::Unwanted) };
                    self.unconfirmed |= matches!(command, Command::ChatSend { .. });
                    if say(&mut self.socket, &command).await?.is_none() {
                        return Ok(Connection::Lost);
                    }
                }
                message = timeout(MOST_SILENCE, self.socket.next()) => match message.unwrap_or(None) {
                    Some(Ok(Message::Text(text))) => {
                        let event = self.is_verbatim.then(|| serde_json::from_str::<Verbatim>(&text).ok());
                        let event = event.flatten().and_then(|verbatim| verbatim.event);
                        let message = match serde_json::from_str(&text) {
                            Ok(message) => message,
                            Err(_) if event.is_some() => ServerMessage::Unknown,
                            // A message from a newer server that we do not know.
                            Err(_) => continue,
                        };
                        self.note(&message);
                        if self.to_owner.send(Ok(News::Said(Box::new(message), event))).await.is_err() {
                            return Ok(Connection::Unwanted);
                        }
                    }
                    Some(Ok(Message::Close(_)) | Err(_)) | None => return Ok(Connection::Lost),
                    Some(Ok(_)) => {}
                }
            }
        }
    }

    fn note(&mut self, message: &ServerMessage) {
        match message {
            ServerMessage::ChatDelta { event, cursor } => {
                self.unconfirmed &= !matches!(event.body, EventBody::UserMessage { .. });
                if let Some(cursor) = cursor {
                    self.place = Some((event.conversation_id.clone(), cursor.clone()));
                }
            }
            ServerMessage::ChatError { .. } => self.unconfirmed = false,
            _ => {}
        }
    }

    /// Reconnects and continues reading at the cursor.
    async fn reopen(&mut self) -> Result<()> {
        let Some((conversation_id, cursor)) = self.place.clone().filter(|_| !self.unconfirmed) else {
            bail!(
                "the connection was lost before the server said that it has the message: check whether it \
                 arrived before sending it again"
            );
        };
        let id = conversation_id.clone();
        let again = Command::ChatSubscribe { conversation_id, cursor: Some(cursor), extensions: Some(true) };
        let (mut wait, mut denied) = (FIRST_WAIT, 0);
        for tried in 1..=TRIES {
            // The relay notices when the owner is gone.
            let _ = self.to_owner.send(Ok(News::Lost(tried))).await;
            sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
            let mut socket = match connect(&self.address, self.token.as_ref()).await {
                Ok((socket, _)) => socket,
                Err(Unconnected { error, most: Some(most) }) if denied + 1 >= most => return Err(error),
                Err(Unconnected { most, .. }) => {
                    denied += u32::from(most.is_some());
                    continue;
                }
            };
            if say(&mut socket, &again).await?.is_some() {
                self.socket = socket;
                let _ = self.to_owner.send(Ok(News::Back)).await;
                return Ok(());
            }
        }
        let server = self.address.call("");
        bail!(
            "the connection to {server} was lost and did not come back; the turn goes on when the server does: everturn chat --server {server} \
             --conversation {id}"
        )
    }
}

/// Why relaying ended.
enum Connection {
    Lost,
    Unwanted,
}

/// Sends a command; `None` if the connection is lost.
async fn say(socket: &mut Socket, command: &Command) -> Result<Option<()>> {
    let text = serde_json::to_string(command).context("a command that is not JSON")?;
    Ok(socket.send(Message::text(text)).await.ok())
}

/// Why there is no connection.
struct Unconnected {
    error: anyhow::Error,
    /// How many refusals end this, if it is one.
    most: Option<u32>,
}

impl From<anyhow::Error> for Unconnected {
    fn from(error: anyhow::Error) -> Self {
        Self { error, most: None }
    }
}

async fn connect(address: &Address, token: Option<&Hidden>) -> Result<(Socket, Clock), Unconnected> {
    let mut request = address.as_str().into_client_request().context("the server's address")?;
    if let Some(token) = token {
        let value = HeaderValue::try_from(format!("Bearer {}", token.reveal()));
        let mut value = value.map_err(|_| anyhow!("the token has characters that a header cannot carry"))?;
        value.set_sensitive(true);
        request.headers_mut().insert(AUTHORIZATION, value);
    }
    let asked = timeout(ANSWER_WITHIN, connect_async(request)).await;
    let asked = asked.map_err(|_| anyhow!("the server at {} does not answer", address.as_str()))?;
    let (socket, response) = asked.map_err(|error| explain(address, token.is_some(), error))?;
    Ok((socket, remote::clock(response.headers())))
}

fn explain(address: &Address, has_token: bool, error: tungstenite::Error) -> Unconnected {
    let address = address.as_str();
    let error = match error {
        tungstenite::Error::Http(response) => {
            let status = response.status();
            let body = response.body().as_deref().unwrap_or_default();
            let denied = remote::refusal(address, status, has_token, body);
            if let Some(error) = denied {
                // The server itself would say the same again.
                let is_its_own = serde_json::from_slice::<ErrorBody>(body).is_ok();
                return Unconnected { error, most: Some(if is_its_own { 1 } else { DENIALS }) };
            }
            anyhow!("{address} is not an everturn server: it answered {status}")
        }
        tungstenite::Error::Io(error) => anyhow!(
            "cannot reach the server at {address}: {error}; start one with `everturn serve`, or leave --server out"
        ),
        other => anyhow!("cannot connect to {address}: {other}"),
    };
    error.into()
}

#[cfg(test)]
mod tests {
    use std::future;

    use serde_json::json;
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::TcpListener,
    };
    use tokio_tungstenite::accept_async;

    use super::*;

    const OF_PROXY: &str = "<h1>Log in</h1>";
    const OF_SERVER: &str = r#"{"error":"this token has expired"}"#;

    /// Answers one connection with 401.
    async fn deny(listener: &TcpListener, body: &str) {
        let (mut stream, _) = listener.accept().await.unwrap();
        assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
        let head = format!("HTTP/1.1 401 Unauthorized\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + body).as_bytes()).await.unwrap();
    }

    /// A link after the first event, where it connects to, and the other end.
    async fn connected() -> (Link, TcpListener, WebSocketStream<TcpStream>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = Address::parse(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
        let server = Server::new(address, Hidden::new("token"));
        let accept = async { accept_async(listener.accept().await.unwrap().0).await.unwrap() };
        let (link, mut socket) = tokio::join!(Link::open(&server, false), accept);
        let event = json!({ "type": "turn-start", "conversationId": "c", "turnId": "t" });
        let delta = json!({ "type": "chat.delta", "event": event, "cursor": "1" });
        socket.send(Message::text(delta.to_string())).await.unwrap();
        let mut link = link.unwrap();
        assert!(matches!(link.next().await, Ok(News::Said(..))));
        (link, listener, socket)
    }

    /// The same, lost.
    async fn lost() -> (Link, TcpListener) {
        let (link, listener, _) = connected().await;
        (link, listener)
    }

    /// How often it tried again, and how that ended.
    async fn outcome(link: &mut Link) -> (u32, Result<()>) {
        let mut tries = 0;
        loop {
            match link.next().await {
                Ok(News::Lost(tried)) => tries = tried,
                Ok(News::Back) => return (tries, Ok(())),
                Ok(News::Said(..)) => {}
                Err(error) => return (tries, Err(error)),
            }
        }
    }

    #[tokio::test]
    async fn a_server_that_says_nothing_any_more_is_left() {
        let (mut link, listener, _silent) = connected().await;
        tokio::time::pause();
        assert!(matches!(link.next().await, Ok(News::Lost(1))), "nothing was heard for a while");
        tokio::time::resume();
        let silent_again = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            assert!(stream.read(&mut [0; 4096]).await.unwrap() > 0);
            tokio::time::pause();
            stream
        };
        let (_stream, news) = tokio::join!(silent_again, link.next());
        assert!(matches!(news, Ok(News::Lost(2))), "the request was not answered");
        tokio::time::resume();
        let (_socket, news) =
            tokio::join!(async { accept_async(listener.accept().await.unwrap().0).await }, link.next());
        assert!(matches!(news, Ok(News::Back)));
    }

    #[tokio::test]
    async fn a_proxy_that_refuses_for_a_while_ends_nothing() {
        let (mut link, listener) = lost().await;
        tokio::spawn(async move {
            for _ in 1..DENIALS {
                deny(&listener, OF_PROXY).await;
            }
            let _socket = accept_async(listener.accept().await.unwrap().0).await.unwrap();
            future::pending::<()>().await;
        });
        let (tries, ended) = outcome(&mut link).await;
        assert_eq!((tries, ended.is_ok()), (DENIALS, true), "{ended:?}");
    }

    #[tokio::test]
    async fn a_refusal_that_stays_is_told() {
        for (body, times) in [(OF_PROXY, DENIALS), (OF_SERVER, 1)] {
            let (mut link, listener) = lost().await;
            tokio::spawn(async move {
                loop {
                    deny(&listener, body).await;
                }
            });
            let (tries, ended) = outcome(&mut link).await;
            let why = ended.unwrap_err().to_string();
            assert_eq!((tries, why.contains("did not accept the token")), (times, true), "{why}");
        }
    }
}
