//! The HTTP client: one request, one response, and a bound on every wait.

mod connect;
mod error;
mod lane;
mod other;
mod response;
mod tls;
mod watch;

use std::{fmt, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{Uri, header::HeaderValue};

use crate::ConfigError;
use connect::Proxies;
pub(crate) use error::ConnectionError;
use lane::Lanes;
pub(crate) use response::{BODY_LIMIT, Response, Sending};
pub(crate) use watch::{Notice, Watch};

/// The `user-agent` of requests to providers.
pub(crate) const USER_AGENT: &str = concat!("everturn/", env!("CARGO_PKG_VERSION"));

/// How long an idle connection is kept, and how many are kept per host. If more calls than that run at once, the others
/// connect anew each time, which takes about as much CPU time as 30 deltas, without TLS.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);
const IDLE_CONNECTIONS: usize = 512;

/// Interval of HTTP/2 pings while a call is open.
const PING: Duration = Duration::from_secs(20);

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
    /// Returns the limit on a call without progress.
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

/// A request that is ready to be sent, or why it could not be built.
pub(crate) type Request = Result<hyper::Request<Full<Bytes>>, hyper::http::Error>;

/// A connection pool, shared by its clones and by all adapters created with it.
///
/// It sends each request once: it neither retries nor follows redirects, which would send credentials to another host. It
/// does not accept compressed responses, because proxies buffer streams to compress them.
#[derive(Clone)]
pub struct HttpClient {
    lanes: Lanes,
    proxies: Proxies,
    config: HttpConfig,
    authorities: Arc<[Vec<u8>]>,
}

impl HttpClient {
    /// Creates a pool without connections.
    ///
    /// # Errors
    /// Returns an error if the system has no usable TLS configuration.
    pub fn new(config: HttpConfig) -> Result<Self, ConfigError> {
        Self::trusting(config, Vec::new())
    }

    /// Like [`HttpClient::new`], and also trusts the authorities with these certificates, in DER, besides the system's.
    ///
    /// # Errors
    /// Like [`HttpClient::new`].
    pub fn trusting(config: HttpConfig, authorities: Vec<Vec<u8>>) -> Result<Self, ConfigError> {
        let proxies = if config.system_proxy { Proxies::of_system() } else { Proxies::none() };
        let connector =
            connect::connector(tls::config(&authorities)?, proxies.clone(), config.timeouts.connect);
        let lanes = Lanes::new(connector);
        Ok(Self { lanes, proxies, config, authorities: authorities.into() })
    }

    /// Creates a client with the same settings for requests other than model calls.
    ///
    /// # Errors
    /// Returns an error if the system has no usable TLS configuration, or if a proxy in the environment is invalid.
    pub fn reqwest(&self) -> Result<reqwest::Client, ConfigError> {
        other::client(self.config, &self.authorities)
    }

    /// Returns the timeouts.
    pub(crate) fn timeouts(&self) -> Timeouts {
        self.config.timeouts
    }

    /// Returns the `proxy-authorization` header for requests to this address, if a proxy forwards them. A tunnel gets
    /// its own header when it is opened.
    pub(crate) fn proxy_authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        self.proxies.authorization(uri)
    }

    /// Sends a request when first polled, and waits for the response headers. Only the connection has a timeout here.
    pub(crate) fn send(&self, request: Request) -> Sending {
        let (pool, place) = self.lanes.enter();
        Sending::new(request.map(|request| pool.request(request)), self.config.timeouts.idle, place)
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("config", &self.config).finish_non_exhaustive()
    }
}
