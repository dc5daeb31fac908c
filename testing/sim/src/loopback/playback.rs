//! Writes a reply to a socket, piece by piece.

use std::io;
use std::ops::Range;

use tokio::io::{AsyncWrite, AsyncWriteExt};

use super::reply::{Ending, Framing, Head, Reply};

/// What happens to the connection after a reply; `None` if it can take another request.
pub(super) type After = Option<Ending>;

/// Writes the reply, up to its scripted end.
pub(super) async fn play(reply: &Reply, write: &mut (impl AsyncWrite + Unpin)) -> io::Result<After> {
    for gate in &reply.before_head {
        gate.pass().await;
    }
    if let Some(head) = &reply.head {
        send(write, head_bytes(head, reply.framing, reply.body.len()).as_bytes()).await?;
    }
    for piece in pieces(reply) {
        if piece.start > 0 {
            pause(reply).await;
        }
        pass_gates(reply, piece.start).await;
        if let Some(cut) = reply.cut.filter(|cut| cut.at < piece.end) {
            send(write, &frame(reply, &piece, cut.at)).await?;
            return Ok(Some(cut.how));
        }
        send(write, &frame(reply, &piece, piece.end)).await?;
    }
    pass_gates(reply, reply.body.len()).await;
    if let Some(cut) = reply.cut {
        return Ok(Some(cut.how));
    }
    match reply.framing {
        Framing::Length => Ok(None),
        Framing::Chunked => send(write, b"0\r\n\r\n").await.map(|()| None),
        Framing::Close => Ok(Some(Ending::Fin)),
    }
}

/// Returns the ranges of the body that are written separately. Gates are always between two of them, so that one behind
/// a truncation is never reached.
fn pieces(reply: &Reply) -> impl Iterator<Item = Range<usize>> {
    let length = reply.body.len();
    let gates = reply.gates.iter().map(|(offset, _)| *offset);
    let mut edges: Vec<usize> = reply.splits.iter().copied().chain(gates).filter(|at| *at < length).collect();
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

async fn pass_gates(reply: &Reply, offset: usize) {
    for (at, gate) in &reply.gates {
        if (*at).min(reply.body.len()) == offset {
            gate.pass().await;
        }
    }
}

/// Between two writes: lets the client read the first one separately, or keeps the pace of a demo.
async fn pause(reply: &Reply) {
    match reply.pace {
        Some(pace) => tokio::time::sleep(pace).await,
        None => tokio::task::yield_now().await,
    }
}

async fn send(write: &mut (impl AsyncWrite + Unpin), bytes: &[u8]) -> io::Result<()> {
    write.write_all(bytes).await?;
    write.flush().await
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
