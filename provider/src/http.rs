//! HTTP: one request out, one response in, every wait bounded.

mod error;
mod response;
mod tls;
mod watch;

use std::time::Duration;

use futures_core::future::BoxFuture;
use reqwest::{Request, redirect, retry};

use crate::ConfigError;
pub(crate) use error::ConnectionError;
pub(crate) use response::{BODY_LIMIT, Response};
pub(crate) use watch::{Notice, Watch};

/// How long a connection on which nothing comes is left alone before the peer's system is asked for a sign, and how long
/// until it is asked again.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// How long what was sent, or such a question, may stay unacknowledged by the peer's system. It says nothing about how long
/// a living server may think.
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);

/// How long a call waits for its peer. Nothing bounds a whole call unless set: a healthy answer may take an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For name, connection and TLS handshake. 10 s unless set.
    pub connect: Duration,
    /// From the start of a call to the head of its response. 120 s unless set.
    pub first_byte: Duration,
    /// Between any two pieces of a response's body, comments included. 300 s unless set: models that think in secret
    /// are silent for minutes, and a call that is cut off then would be again.
    pub idle: Duration,
    /// Between any two words of an answer, and from the head of its response to the first one, whatever else arrives:
    /// comments, pings and events without content show that the peer lives, not that it gets on. 600 s unless set; never
    /// shorter than `idle`.
    pub progress: Duration,
    /// How long nothing of an answer comes before those who watch are told, and then again every minute. 20 s unless set;
    /// zero = never.
    pub silence: Duration,
    /// For a whole call, however well it goes. `None` unless set.
    pub total: Option<Duration>,
}

impl Timeouts {
    /// The bound on a call that shows signs of life alone.
    pub(crate) fn progress(&self) -> Duration {
        self.progress.max(self.idle)
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(300),
            progress: Duration::from_secs(600),
            silence: Duration::from_secs(20),
            total: None,
        }
    }
}

/// How connections are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// How long to wait for a peer.
    pub timeouts: Timeouts,
    /// Whether the proxies that the environment names (`HTTPS_PROXY` and so on) are used. They are unless set.
    pub system_proxy: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self { timeouts: Timeouts::default(), system_proxy: true }
    }
}

/// A pool of connections, shared by its clones and by all adapters made with it.
///
/// It sends what it is given once: it neither retries nor follows redirects, which would carry a credential to
/// another host. It never asks for a compressed answer, which a proxy would hold back to compress.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: reqwest::Client,
    timeouts: Timeouts,
}

impl HttpClient {
    /// Makes a pool without connections.
    ///
    /// # Errors
    /// When the system offers no usable TLS or the environment names a proxy that is none.
    pub fn new(config: HttpConfig) -> Result<Self, ConfigError> {
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(tls::config()?)
            .user_agent(concat!("everturn/", env!("CARGO_PKG_VERSION")))
            .retry(retry::never())
            .redirect(redirect::Policy::none())
            .connect_timeout(config.timeouts.connect)
            // A dead HTTP/2 connection would otherwise swallow call after call.
            .http2_keep_alive_interval(Duration::from_secs(20))
            .tcp_keepalive(KEEPALIVE)
            .tcp_keepalive_interval(KEEPALIVE)
            .tcp_keepalive_retries(3)
            .pool_max_idle_per_host(64);
        #[cfg(any(target_os = "android", target_os = "fuchsia", target_os = "linux"))]
        {
            builder = builder.tcp_user_timeout(UNACKNOWLEDGED);
        }
        if !config.system_proxy {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ConfigError::Client(error::chain(&error)))?;
        Ok(Self { client, timeouts: config.timeouts })
    }

    /// How long its calls wait.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Sends a request once it is polled; waits for the head of its response, without any bound but that of connecting.
    pub(crate) fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, ConnectionError>> {
        let (client, idle) = (self.client.clone(), self.timeouts.idle);
        Box::pin(async move { Ok(Response::new(client.execute(request).await?, idle)) })
    }
}
