//! Connections: name resolution, TCP, proxies and TLS, all within one timeout.
//!
//! ```text
//! Connector (timeout) -> HttpsConnector (TLS with the server) -> ViaProxy -> HttpConnector (name, TCP)
//!                                                                  |
//!                                                through a proxy:  '-> [TLS with the proxy] -> CONNECT, for https
//! ```

use std::{
    error::Error,
    fmt, io,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_core::future::BoxFuture;
use hyper::{
    Uri,
    header::HeaderValue,
    http::uri::Scheme,
    rt::{Read, ReadBufCursor, Write},
};
use hyper_rustls::{HttpsConnector, MaybeHttpsStream};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, dns::GaiResolver, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use rustls::ClientConfig;
use tokio::{net::TcpStream, time::timeout};
use tower::{Service, util::MapErr};

/// TCP keepalive: idle time before the first probe, and time between probes.
pub(super) const KEEPALIVE: Duration = Duration::from_secs(15);
pub(super) const PROBES: u32 = 3;

/// TCP user timeout: how long sent data or a probe may remain unacknowledged by the peer's system. It does not limit how
/// long a live server may take to answer.
#[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
pub(super) const UNACKNOWLEDGED: Duration = Duration::from_secs(60);

type BoxError = Box<dyn Error + Send + Sync>;
type Resolver = MapErr<GaiResolver, fn(io::Error) -> NameError>;
type Tcp = HttpConnector<Resolver>;

/// Creates the connector of a pool. `limit` applies to name resolution, connection and handshakes together.
pub(super) fn connector(tls: ClientConfig, proxies: Proxies, limit: Duration) -> Connector {
    let resolver: Resolver = MapErr::new(GaiResolver::new(), NameError);
    let mut tcp = HttpConnector::new_with_resolver(resolver);
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_keepalive(Some(KEEPALIVE));
    tcp.set_keepalive_interval(Some(KEEPALIVE));
    tcp.set_keepalive_retries(Some(PROBES));
    #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
    tcp.set_tcp_user_timeout(Some(UNACKNOWLEDGED));
    // CONNECT is HTTP/1.1, so nothing else is offered to a proxy.
    let mut to_proxy = tls.clone();
    to_proxy.alpn_protocols.clear();
    let via_proxy = ViaProxy { proxies, secure: HttpsConnector::from((tcp.clone(), to_proxy)), tcp };
    Connector { inner: HttpsConnector::from((via_proxy, tls)), limit }
}

/// Connects within a time limit.
#[derive(Clone)]
pub(super) struct Connector {
    inner: HttpsConnector<ViaProxy>,
    limit: Duration,
}

impl Service<Uri> for Connector {
    type Response = MaybeHttpsStream<ToServer>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let connecting = timeout(self.limit, self.inner.call(server));
        Box::pin(async move { connecting.await? })
    }
}

/// A name that could not be resolved.
#[derive(Debug)]
pub(super) struct NameError(io::Error);

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Error for NameError {}

/// The proxies to use, by address.
#[derive(Clone)]
pub(super) struct Proxies(Option<Arc<Matcher>>);

impl Proxies {
    /// Reads the environment (`HTTPS_PROXY`, `HTTP_PROXY`, `ALL_PROXY`, `NO_PROXY`), then the system's settings.
    pub(super) fn of_system() -> Self {
        Self(Some(Arc::new(Matcher::from_system())))
    }

    pub(super) fn none() -> Self {
        Self(None)
    }

    #[cfg(test)]
    pub(super) fn of(matcher: Matcher) -> Self {
        Self(Some(Arc::new(matcher)))
    }

    /// Returns the credentials for a proxy that forwards requests to this address.
    pub(super) fn authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        if uri.scheme() != Some(&Scheme::HTTP) {
            return None;
        }
        let mut value = self.0.as_ref()?.intercept(uri)?.basic_auth()?.clone();
        value.set_sensitive(true);
        Some(value)
    }
}

/// Connects to a server directly or through a proxy.
#[derive(Clone)]
pub(super) struct ViaProxy {
    proxies: Proxies,
    tcp: Tcp,
    /// Connects to proxies, whose own URL may be https.
    secure: HttpsConnector<Tcp>,
}

impl Service<Uri> for ViaProxy {
    type Response = ToServer;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<ToServer, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        // Connectors are always ready.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, server: Uri) -> Self::Future {
        let Some(proxy) = self.proxies.0.as_ref().and_then(|proxies| proxies.intercept(&server)) else {
            let connecting = self.tcp.call(server);
            return Box::pin(async move {
                Ok(ToServer { io: MaybeHttpsStream::Http(connecting.await?), forwards: false })
            });
        };
        if server.scheme() != Some(&Scheme::HTTPS) {
            let connecting = self.secure.call(proxy.uri().clone());
            return Box::pin(async move { Ok(ToServer { io: connecting.await?, forwards: true }) });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), self.secure.clone());
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let connecting = tunnel.call(server);
        Box::pin(async move { Ok(ToServer { io: connecting.await?, forwards: false }) })
    }
}

/// A connection to a server, possibly through a proxy.
pub(super) struct ToServer {
    io: MaybeHttpsStream<TokioIo<TcpStream>>,
    /// Whether a proxy reads and forwards the requests, so that they must name the server.
    forwards: bool,
}

impl Connection for ToServer {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.forwards)
    }
}

impl Read for ToServer {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for ToServer {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, parts)
    }
}

#[cfg(test)]
mod tests;
