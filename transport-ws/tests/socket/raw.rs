//! A peer that violates the protocol.

use std::net::SocketAddr;

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
};

/// A connection that was upgraded by hand.
pub(crate) struct RawPeer {
    stream: TcpStream,
}

impl RawPeer {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET /ws HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        assert!(head.starts_with(b"HTTP/1.1 101 "));
        Self { stream }
    }

    /// Sends a frame whose first byte is `head`, masked with zeros.
    pub(crate) async fn send(&mut self, head: u8, payload: &[u8]) {
        let mut bytes = frame_head(head, payload.len() as u64);
        bytes.extend_from_slice(payload);
        self.send_bytes(&bytes).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).await.unwrap();
    }

    pub(crate) async fn try_send_bytes(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Returns the first byte and the payload of the next frame; `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<(u8, Vec<u8>)> {
        let head = self.stream.read_u8().await.ok()?;
        let length = match self.stream.read_u8().await.ok()? {
            126 => u64::from(self.stream.read_u16().await.ok()?),
            127 => self.stream.read_u64().await.ok()?,
            short => u64::from(short),
        };
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).await.ok()?;
        Some((head, payload))
    }

    /// Returns the code of the next close frame, and skips other frames.
    pub(crate) async fn close_code(&mut self) -> u16 {
        loop {
            let (head, payload) = self.next().await.expect("a close frame");
            if head == 0x88 {
                return u16::from_be_bytes([payload[0], payload[1]]);
            }
        }
    }
}

/// Returns the header of a frame, with a mask of zeros.
pub(crate) fn frame_head(head: u8, length: u64) -> Vec<u8> {
    let mut bytes = vec![head, 0xff];
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes
}
