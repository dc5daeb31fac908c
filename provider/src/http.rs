//! The HTTP client: one request, one response, every wait bounded.

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

/// TCP keepalive: idle time before the first probe, and time between probes.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// TCP user timeout: how long sent data or a probe may stay unacknowledged by the peer's system. It does not limit how long
/// a live server may think.
const UNACKNOWLEDGED: Duration = Duration::from_secs(60);

/// Timeouts of a provider call. By default nothing limits a whole call: a healthy answer may take an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Limit on name resolution, connection and TLS handshake together. Default: 10 s.
    pub connect: Duration,
    /// Limit from the start of a call to the response headers. Default: 120 s.
    pub first_byte: Duration,
    /// Limit between two pieces of the response body, comments included. Default: 300 s, because models with hidden reasoning
    /// are silent for minutes, and a repeated call would be cut off again.
    pub idle: Duration,
    /// Limit between two pieces of content, and from the response headers to the first one. Comments, pings and events without
    /// content do not count: they show that the peer is alive, not that it makes progress. Default: 600 s; never less than
    /// `idle`.
    pub progress: Duration,
    /// Silence after which subscribers are told, and again every minute. Default: 20 s; zero = never.
    pub silence: Duration,
    /// Limit on the whole call. Default: none.
    pub total: Option<Duration>,
}

impl Timeouts {
    /// Limit on a call that makes no progress.
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

/// Configuration of an [`HttpClient`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpConfig {
    /// The timeouts of its calls.
    pub timeouts: Timeouts,
    /// Whether to use the proxies from the environment (`HTTPS_PROXY` and so on). Default: yes.
    pub system_proxy: bool,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self { timeouts: Timeouts::default(), system_proxy: true }
    }
}

/// A connection pool, shared by its clones and by all adapters created with it.
///
/// It sends each request once: it neither retries nor follows redirects, which would send credentials to another host. It
/// does not accept compressed responses, because proxies buffer streams to compress them.
#[derive(Clone, Debug)]
pub struct HttpClient {
    client: reqwest::Client,
    timeouts: Timeouts,
}

impl HttpClient {
    /// Creates a pool without connections.
    ///
    /// # Errors
    /// When the system has no usable TLS configuration, or a proxy in the environment is invalid.
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

    /// Returns the pool itself, for requests other than model calls.
    pub fn reqwest(&self) -> &reqwest::Client {
        &self.client
    }

    /// Returns its timeouts.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.timeouts
    }

    /// Sends a request when first polled and waits for the response headers. Only connecting has a timeout here.
    pub(crate) fn send(&self, request: Request) -> BoxFuture<'static, Result<Response, ConnectionError>> {
        let (client, idle) = (self.client.clone(), self.timeouts.idle);
        Box::pin(async move { Ok(Response::new(client.execute(request).await?, idle)) })
    }
}
