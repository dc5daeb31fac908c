//! Reads requests from a connection, with limits.

use std::{future::pending, io};

use bytes::{Buf as _, Bytes, BytesMut};
use tokio::io::{AsyncRead, AsyncReadExt};

use super::Request;

/// Maximum size of the request line and headers, in bytes.
const MAX_HEAD: usize = 64 * 1024;
/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 64 * 1024 * 1024;
/// Maximum length of a chunk size line, in bytes.
const MAX_CHUNK_LINE: usize = 1024;

/// Why there is no request.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The client disconnected.
    Gone,
    /// The request is rejected with this status and text.
    Rejected(u16, &'static str),
}

impl From<io::Error> for Refusal {
    fn from(_: io::Error) -> Self {
        Self::Gone
    }
}

/// Bytes of one connection that were read and not parsed yet.
#[derive(Default)]
pub(super) struct RequestReader {
    buffer: BytesMut,
}

impl RequestReader {
    /// Reads the next complete request. Its index is 0; the ledger assigns it.
    pub(super) async fn next(
        &mut self,
        read: &mut (impl AsyncRead + Unpin),
        connection: usize,
    ) -> Result<Request, Refusal> {
        let head =
            self.until(read, b"\r\n\r\n", MAX_HEAD, Refusal::Rejected(431, "head over 64 KiB")).await?;
        let mut request = parse_head(&head).ok_or(Refusal::Rejected(400, "not an HTTP/1.1 request head"))?;
        request.connection = connection;
        request.body = if request.header("transfer-encoding").is_some_and(|value| value.contains("chunked")) {
            self.chunked_body(read).await?
        } else {
            let length = request.header("content-length").unwrap_or("0").parse();
            self.exactly(read, length.map_err(|_| Refusal::Rejected(400, "bad content-length"))?).await?
        };
        Ok(request)
    }

    async fn chunked_body(&mut self, read: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, Refusal> {
        let bad = || Refusal::Rejected(400, "bad chunk");
        let mut body = BytesMut::new();
        loop {
            let line = self.until(read, b"\r\n", MAX_CHUNK_LINE, bad()).await?;
            let line = std::str::from_utf8(&line).map_err(|_| bad())?;
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).map_err(|_| bad())?;
            if size == 0 {
                while !self.until(read, b"\r\n", MAX_CHUNK_LINE, bad()).await?.is_empty() {}
                return Ok(body.freeze());
            }
            if size > MAX_BODY - body.len() {
                return Err(Refusal::Rejected(413, "body over 64 MiB"));
            }
            body.extend_from_slice(&self.exactly(read, size).await?);
            if *self.exactly(read, 2).await? != *b"\r\n" {
                return Err(bad());
            }
        }
    }

    /// Reads up to `mark`, and drops the mark.
    async fn until(
        &mut self,
        read: &mut (impl AsyncRead + Unpin),
        mark: &[u8],
        most: usize,
        too_long: Refusal,
    ) -> Result<Bytes, Refusal> {
        let mut searched = 0;
        loop {
            let found = self.buffer[searched..].windows(mark.len()).position(|window| window == mark);
            let known = found.map_or(self.buffer.len(), |place| searched + place);
            if known > most {
                return Err(too_long);
            }
            if found.is_some() {
                let taken = self.buffer.split_to(known).freeze();
                self.buffer.advance(mark.len());
                return Ok(taken);
            }
            searched = self.buffer.len().saturating_sub(mark.len() - 1);
            self.fill(read).await?;
        }
    }

    async fn exactly(&mut self, read: &mut (impl AsyncRead + Unpin), size: usize) -> Result<Bytes, Refusal> {
        if size > MAX_BODY {
            return Err(Refusal::Rejected(413, "body over 64 MiB"));
        }
        while self.buffer.len() < size {
            self.fill(read).await?;
        }
        Ok(self.buffer.split_to(size).freeze())
    }

    /// Returns when the client closed or reset the connection.
    pub(super) async fn hang_up(&mut self, read: &mut (impl AsyncRead + Unpin)) {
        if self.buffer.is_empty() && self.fill(read).await.is_err() {
            return;
        }
        // It sent its next request early. A disconnect will show when we write.
        pending::<()>().await;
    }

    async fn fill(&mut self, read: &mut (impl AsyncRead + Unpin)) -> Result<(), Refusal> {
        self.buffer.reserve(8 * 1024);
        if read.read_buf(&mut self.buffer).await? == 0 { Err(Refusal::Gone) } else { Ok(()) }
    }
}

fn parse_head(head: &[u8]) -> Option<Request> {
    let head = std::str::from_utf8(head).ok()?;
    let mut lines = head.split("\r\n");
    let mut words = lines.next()?.split(' ');
    let (method, path) = (words.next()?, words.next()?);
    if words.next()? != "HTTP/1.1" || words.next().is_some() {
        return None;
    }
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    Some(Request {
        index: 0,
        connection: 0,
        method: method.to_owned(),
        path: path.to_owned(),
        headers: lines.map(header).collect::<Option<_>>()?,
        body: Bytes::new(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn chunks_are_bounded_together() {
        let mut wire = b"POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
        let chunk = [b"1000000\r\n", vec![0; MAX_BODY / 4].as_slice(), b"\r\n"].concat();
        for _ in 0..4 {
            wire.extend_from_slice(&chunk);
        }
        let full = [&wire[..], b"0\r\n\r\n"].concat();
        assert_eq!(RequestReader::default().next(&mut &full[..], 0).await.unwrap().body.len(), MAX_BODY);
        let over = [&wire[..], b"1\r\nx\r\n0\r\n\r\n"].concat();
        let refused = RequestReader::default().next(&mut &over[..], 0).await;
        assert!(matches!(refused, Err(Refusal::Rejected(413, _))));
    }
}
