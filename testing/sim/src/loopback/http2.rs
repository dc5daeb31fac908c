//! HTTP/2, written by hand because libraries refuse to misbehave.

use std::{collections::HashMap, io, ops::Range, sync::Arc};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, WriteHalf};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{AbortHandle, JoinSet};

use super::Request;
use super::ledger::Ledger;
use super::playback::{self, After, Wire};
use super::reply::{Ending, GoAway, Reply};
use super::secure::Stream;
use super::settings::{Http2, INITIAL_WINDOW_SIZE};
use super::window::Windows;

const PREFACE: usize = 24;
/// The largest frame that every peer takes.
const MAX_FRAME: usize = 16 << 10;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;

/// Of data and headers; of settings and pings, the same bit is an acknowledgement.
const END_STREAM: u8 = 1;
const ACK: u8 = 1;
const END_HEADERS: u8 = 4;

/// Bytes to write, and whom to tell once they are written.
type Written = (Vec<u8>, oneshot::Sender<()>);

/// Speaks HTTP/2 until one side ends the connection. Returns how the server does; `None` if the client did.
pub(super) async fn serve(
    stream: Stream,
    http2: Http2,
    ledger: &Ledger,
    number: usize,
) -> (Stream, Option<Ending>) {
    let (mut read, mut write) = tokio::io::split(stream);
    let (queue, mut queued) = mpsc::unbounded_channel();
    let mut connection = Connection {
        http2,
        ledger,
        number,
        queue,
        bodies: HashMap::new(),
        windows: Arc::new(Windows::new()),
        players: JoinSet::new(),
        playing: HashMap::new(),
    };
    let mut buffer = BytesMut::new();
    let ending = async {
        send(&mut write, &frame(SETTINGS, 0, 0, &http2.settings())).await?;
        while buffer.len() < PREFACE {
            if read.read_buf(&mut buffer).await? == 0 {
                return Ok(None);
            }
        }
        buffer.advance(PREFACE);
        loop {
            while let Some(frame) = Frame::take(&mut buffer) {
                send(&mut write, &connection.handle(frame)).await?;
            }
            tokio::select! {
                biased;
                Some((bytes, written)) = queued.recv() => {
                    send(&mut write, &bytes).await?;
                    // Nobody waits if the client has reset the stream.
                    let _ = written.send(());
                }
                Some(Ok((stream, after))) = connection.players.join_next() => {
                    connection.playing.remove(&stream);
                    match after {
                        Some(Ending::Stream(code)) => {
                            send(&mut write, &frame(RST_STREAM, 0, stream, &code.to_be_bytes())).await?;
                        }
                        None | Some(Ending::Left) => {}
                        ending => return Ok(ending),
                    }
                }
                read = read.read_buf(&mut buffer) => if read? == 0 {
                    return Ok(None);
                }
            }
        }
    };
    let ending: io::Result<Option<Ending>> = ending.await;
    let ending = ending.ok().flatten();
    if ending.is_none() {
        connection.playing.iter().for_each(|_| ledger.abandon());
    }
    (read.unsplit(write), ending)
}

async fn send(write: &mut WriteHalf<Stream>, bytes: &[u8]) -> io::Result<()> {
    write.write_all(bytes).await?;
    write.flush().await
}

struct Connection<'a> {
    http2: Http2,
    ledger: &'a Ledger,
    number: usize,
    queue: mpsc::UnboundedSender<Written>,
    /// The bodies of requests that are still arriving, by stream.
    bodies: HashMap<u32, BytesMut>,
    windows: Arc<Windows>,
    /// Each writes one reply.
    players: JoinSet<(u32, After)>,
    playing: HashMap<u32, AbortHandle>,
}

impl Connection<'_> {
    /// Handles a frame. Returns what to send at once.
    fn handle(&mut self, received: Frame) -> Vec<u8> {
        let Frame { kind, flags, stream, payload } = received;
        let mut answer = Vec::new();
        match kind {
            HEADERS => _ = self.bodies.insert(stream, BytesMut::new()),
            DATA => {
                self.bodies.entry(stream).or_default().extend_from_slice(&payload);
                let size = u32::try_from(payload.len()).unwrap_or(0).to_be_bytes();
                if !payload.is_empty() && self.http2.stalled_window.is_none() {
                    answer =
                        [frame(WINDOW_UPDATE, 0, 0, &size), frame(WINDOW_UPDATE, 0, stream, &size)].concat();
                }
            }
            RST_STREAM => {
                self.bodies.remove(&stream);
                if let Some(player) = self.playing.remove(&stream) {
                    player.abort();
                    self.ledger.abandon();
                }
            }
            SETTINGS if flags & ACK == 0 => {
                for setting in payload.chunks_exact(6) {
                    let (name, value) = setting.split_at(2);
                    if name == INITIAL_WINDOW_SIZE.to_be_bytes() {
                        self.windows.begin_with(number(value));
                    }
                }
                answer = frame(SETTINGS, ACK, 0, &[]);
            }
            WINDOW_UPDATE => self.windows.grow(stream, number(&payload)),
            PING if flags & ACK == 0 => answer = frame(PING, ACK, 0, &payload),
            _ => {}
        }
        if matches!(kind, HEADERS | DATA)
            && flags & END_STREAM != 0
            && let Some(body) = self.bodies.remove(&stream)
        {
            self.answer(stream, body.freeze());
        }
        answer
    }

    fn answer(&mut self, stream: u32, body: Bytes) {
        let reply = self.ledger.answer(Request {
            index: 0,
            connection: self.number,
            method: if body.is_empty() { "GET" } else { "POST" }.to_owned(),
            path: String::new(),
            headers: Vec::new(),
            body,
        });
        let mut wire = StreamWire { stream, queue: self.queue.clone(), windows: self.windows.clone() };
        let player = async move {
            let played = playback::play(&reply, &mut wire).await;
            // It fails only when the connection has ended.
            (stream, played.unwrap_or(Some(Ending::Left)))
        };
        self.playing.insert(stream, self.players.spawn(player));
    }
}

/// Writes the reply of one stream.
struct StreamWire {
    stream: u32,
    queue: mpsc::UnboundedSender<Written>,
    windows: Arc<Windows>,
}

impl StreamWire {
    async fn send(&self, kind: u8, flags: u8, stream: u32, payload: &[u8]) -> io::Result<()> {
        let (told, written) = oneshot::channel();
        let gone = |_| io::ErrorKind::NotConnected;
        self.queue
            .send((frame(kind, flags, stream, payload), told))
            .map_err(|_| io::ErrorKind::NotConnected)?;
        Ok(written.await.map_err(gone)?)
    }
}

impl Wire for StreamWire {
    async fn head(&mut self, reply: &Reply) -> io::Result<()> {
        let Some(head) = &reply.head else { return Ok(()) };
        let mut block = Vec::new();
        let status = head.status.to_string();
        for (name, value) in [(":status", &status)]
            .into_iter()
            .chain(head.headers.iter().map(|(name, value)| (name.as_str(), value)))
        {
            // A literal that is not indexed, with a new name.
            block.push(0);
            text(&mut block, &name.to_ascii_lowercase());
            text(&mut block, value);
        }
        self.send(HEADERS, END_HEADERS, self.stream, &block).await
    }

    async fn piece(&mut self, reply: &Reply, piece: &Range<usize>, until: usize) -> io::Result<()> {
        let mut at = piece.start;
        while at < until {
            let size = self.windows.take(self.stream, MAX_FRAME.min(until - at)).await;
            self.send(DATA, 0, self.stream, &reply.body[at..at + size]).await?;
            at += size;
        }
        Ok(())
    }

    async fn go_away(&mut self, go_away: GoAway) -> io::Result<()> {
        let last = if go_away.covers { self.stream } else { self.stream.saturating_sub(2) };
        let payload = [last.to_be_bytes(), go_away.code.to_be_bytes()].concat();
        self.send(GOAWAY, 0, 0, &payload).await
    }

    async fn end(&mut self, reply: &Reply) -> io::Result<After> {
        if reply.head.is_none() {
            return Ok(Some(Ending::Fin));
        }
        self.send(DATA, END_STREAM, self.stream, &[]).await.map(|()| None)
    }
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Bytes,
}

impl Frame {
    /// Takes a frame off the start of what was read, if it has arrived completely.
    fn take(buffer: &mut BytesMut) -> Option<Self> {
        let [a, b, c, kind, flags, stream @ ..] = *buffer.first_chunk::<9>()?;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        if buffer.len() < 9 + length {
            return None;
        }
        buffer.advance(9);
        let stream = u32::from_be_bytes(stream) & (u32::MAX >> 1);
        Some(Self { kind, flags, stream, payload: buffer.split_to(length).freeze() })
    }
}

/// Reads a number of four bytes; 0 if there are not so many.
fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk::<4>().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX).to_be_bytes();
    let mut bytes = length[1..].to_vec();
    bytes.extend_from_slice(&[kind, flags]);
    bytes.extend_from_slice(&stream.to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Writes a text of a header: its length as an integer with a prefix of seven bits, then its bytes.
fn text(block: &mut Vec<u8>, text: &str) {
    let mut length = text.len();
    if length < 127 {
        block.push(u8::try_from(length).unwrap_or(0));
    } else {
        block.push(127);
        length -= 127;
        while length >= 128 {
            block.push(u8::try_from(length % 128).unwrap_or(0) | 128);
            length /= 128;
        }
        block.push(u8::try_from(length).unwrap_or(0));
    }
    block.extend_from_slice(text.as_bytes());
}
