//! Writes a reply to a connection, piece by piece.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::reply::{Cut, Ending, Framing, GoAway, Head, Reply};

/// What happens to the connection after a reply; `None` if it can take another request.
pub(super) type After = Option<Ending>;

/// A version of HTTP: where and how a reply is written.
pub(super) trait Wire {
    /// Writes the head, or nothing if the reply has none.
    async fn head(&mut self, reply: &Reply) -> io::Result<()>;
    /// Writes a piece of the body up to the offset `until`.
    async fn piece(&mut self, reply: &Reply, piece: &Range<usize>, until: usize) -> io::Result<()>;
    /// Says that a connection takes no more requests.
    async fn go_away(&mut self, go_away: GoAway) -> io::Result<()>;
    /// Marks the proper end of the body.
    async fn end(&mut self, reply: &Reply) -> io::Result<After>;
}

/// Writes the reply, up to its scripted end.
pub(super) async fn play(reply: &Reply, wire: &mut impl Wire) -> io::Result<After> {
    for gate in &reply.before_head {
        gate.pass().await;
    }
    wire.head(reply).await?;
    for piece in pieces(reply) {
        if piece.start > 0 {
            pause(reply).await;
        }
        pass(reply, piece.start, wire).await?;
        if let Some(cut) = reply.cut.filter(|cut| cut.at < piece.end) {
            wire.piece(reply, &piece, cut.at).await?;
            return Ok(Some(cut.how));
        }
        wire.piece(reply, &piece, piece.end).await?;
    }
    pass(reply, reply.body.len(), wire).await?;
    match reply.cut {
        Some(Cut { how: Ending::Ended(code), .. }) => {
            wire.end(reply).await?;
            Ok(Some(Ending::Stream(code)))
        }
        Some(cut) => Ok(Some(cut.how)),
        None => wire.end(reply).await,
    }
}

/// HTTP/1.1.
pub(super) struct Http1<'a, W>(pub(super) &'a mut W);

impl<W: AsyncWrite + Unpin> Http1<'_, W> {
    async fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all(bytes).await?;
        self.0.flush().await
    }
}

impl<W: AsyncWrite + Unpin> Wire for Http1<'_, W> {
    async fn head(&mut self, reply: &Reply) -> io::Result<()> {
        match &reply.head {
            Some(head) => self.send(head_bytes(head, reply.framing, reply.body.len()).as_bytes()).await,
            None => Ok(()),
        }
    }

    async fn piece(&mut self, reply: &Reply, piece: &Range<usize>, until: usize) -> io::Result<()> {
        self.send(&frame(reply, piece, until)).await
    }

    async fn go_away(&mut self, _: GoAway) -> io::Result<()> {
        // There is nothing like it.
        Ok(())
    }

    async fn end(&mut self, reply: &Reply) -> io::Result<After> {
        match reply.framing {
            Framing::Length => Ok(None),
            Framing::Chunked => self.send(b"0\r\n\r\n").await.map(|()| None),
            Framing::Close => Ok(Some(Ending::Fin)),
        }
    }
}

/// Returns the ranges of the body that are written separately. Gates are always between two of them, so that one behind
/// a truncation is never reached.
fn pieces(reply: &Reply) -> impl Iterator<Item = Range<usize>> {
    let length = reply.body.len();
    let gates = reply.gates.iter().map(|(offset, _)| *offset);
    let going = reply.go_away.iter().map(|(offset, _)| *offset);
    let edges = reply.splits.iter().copied().chain(gates).chain(going);
    let mut edges: Vec<usize> = edges.filter(|at| *at < length).collect();
    edges.extend([0, length]);
    edges.sort_unstable();
    edges.dedup();
    (1..edges.len()).map(move |n| edges[n - 1]..edges[n])
}

/// Returns the piece as sent, up to the body offset `until`. A truncated chunk announces its full size.
fn frame(reply: &Reply, piece: &Range<usize>, until: usize) -> Vec<u8> {
    let sent = &reply.body[piece.start..until];
    if reply.framing != Framing::Chunked {
        return sent.to_vec();
    }
    if sent.is_empty() {
        return Vec::new();
    }
    let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
    framed.extend_from_slice(sent);
    if until == piece.end {
        framed.extend_from_slice(b"\r\n");
    }
    framed
}

async fn pass(reply: &Reply, offset: usize, wire: &mut impl Wire) -> io::Result<()> {
    if let Some((_, go_away)) = reply.go_away.filter(|(at, _)| (*at).min(reply.body.len()) == offset) {
        wire.go_away(go_away).await?;
    }
    for (at, gate) in &reply.gates {
        if (*at).min(reply.body.len()) == offset {
            gate.pass().await;
        }
    }
    Ok(())
}

/// Between two writes: lets the client read the first one separately, or keeps the pace of a demo.
async fn pause(reply: &Reply) {
    match reply.pace {
        Some(pace) => tokio::time::sleep(pace).await,
        None => tokio::task::yield_now().await,
    }
}

fn head_bytes(head: &Head, framing: Framing, length: usize) -> String {
    // Clients read the number; the reason phrase is optional and omitted here.
    let mut text = format!("HTTP/1.1 {} \r\n", head.status);
    for (name, value) in &head.headers {
        text += &format!("{name}: {value}\r\n");
    }
    match framing {
        Framing::Length => text += &format!("content-length: {length}\r\n"),
        Framing::Chunked => text += "transfer-encoding: chunked\r\n",
        Framing::Close => text += "connection: close\r\n",
    }
    text + "\r\n"
}
