//! TLS: how a server greets a connection, and the stream that comes of it.

use std::{
    io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, ReadBuf},
    net::TcpStream,
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig, server::TlsStream};

use super::settings::Http2;
use crate::Identity;

/// What a server does when a client begins a TLS handshake.
#[derive(Clone, Debug)]
pub enum Handshake {
    /// Completes it, and speaks HTTP.
    Complete(Tls),
    /// Reads the client's hello, sends these bytes instead of its own, and closes the connection.
    Instead(&'static [u8]),
    /// Reads the client's hello, and resets the connection.
    Reset,
}

/// A server's certificate, and the versions of HTTP that it offers.
#[derive(Clone, Debug)]
pub struct Tls {
    config: Arc<ServerConfig>,
    http2: Http2,
}

impl Tls {
    /// Offers HTTP/1.1 alone.
    pub fn http1(identity: &Identity) -> Self {
        Self { config: identity.serving(&["http/1.1"]), http2: Http2::default() }
    }

    /// Offers HTTP/2, and HTTP/1.1 to clients without it.
    pub fn http2(identity: &Identity) -> Self {
        Self { config: identity.serving(&["h2", "http/1.1"]), http2: Http2::default() }
    }

    /// Announces how many streams a connection may have at once. By default, it is unlimited.
    #[must_use]
    pub fn max_streams(mut self, most: u32) -> Self {
        self.http2.max_streams = Some(most);
        self
    }

    /// Never takes more than this many bytes of a request: the window of each stream stays used up.
    #[must_use]
    pub fn stalled_window(mut self, bytes: u32) -> Self {
        self.http2.stalled_window = Some(bytes);
        self
    }
}

/// A connection, encrypted or not.
pub(super) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

impl Stream {
    /// Greets a client. Returns the stream, and how to speak HTTP/2 if that was agreed on.
    pub(super) async fn greet(mut tcp: TcpStream, handshake: Handshake) -> io::Result<(Self, Option<Http2>)> {
        let tls = match handshake {
            Handshake::Complete(tls) => tls,
            Handshake::Instead(bytes) => {
                hello(&mut tcp).await?;
                tcp.write_all(bytes).await?;
                tcp.shutdown().await?;
                return Err(io::ErrorKind::NotConnected.into());
            }
            Handshake::Reset => {
                hello(&mut tcp).await?;
                tcp.set_zero_linger()?;
                return Err(io::ErrorKind::NotConnected.into());
            }
        };
        let stream = TlsAcceptor::from(tls.config).accept(tcp).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
        Ok((Self::Tls(Box::new(stream)), is_http2.then_some(tls.http2)))
    }

    /// Returns the connection below TLS.
    pub(super) fn tcp(&mut self) -> &mut TcpStream {
        match self {
            Self::Plain(tcp) => tcp,
            Self::Tls(tls) => tls.get_mut().0,
        }
    }
}

/// Reads one TLS record: a client's hello.
async fn hello(tcp: &mut TcpStream) -> io::Result<()> {
    let mut head = [0; 5];
    tcp.read_exact(&mut head).await?;
    let mut rest = vec![0; usize::from(u16::from_be_bytes([head[3], head[4]]))];
    tcp.read_exact(&mut rest).await.map(drop)
}

/// Calls a method of the stream inside.
macro_rules! inner {
    ($self:ident, $method:ident $(, $argument:expr)*) => {
        match $self.get_mut() {
            Self::Plain(tcp) => Pin::new(tcp).$method($($argument),*),
            Self::Tls(tls) => Pin::new(tls).$method($($argument),*),
        }
    };
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        inner!(self, poll_read, cx, buffer)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        inner!(self, poll_write, cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, poll_flush, cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        inner!(self, poll_shutdown, cx)
    }
}
