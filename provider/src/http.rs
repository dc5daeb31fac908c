//! HTTP: one request out, one response in, every wait bounded.

mod fault;
mod response;
mod tls;

use std::time::Duration;

use everturn_diagnosis::Transport;
use reqwest::{Request, redirect, retry};
use tokio::time::timeout;

use crate::ConfigError;
pub(crate) use fault::Fault;
pub(crate) use response::{BODY_LIMIT, Response};

/// How long a call waits for its peer. Nothing bounds a whole call: a healthy answer may take an hour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// For name, connection and TLS handshake. 10 s unless set.
    pub connect: Duration,
    /// From the start of a call to the head of its response. 120 s unless set.
    pub first_byte: Duration,
    /// Between any two pieces of a response's body, comments included. 300 s unless set: models that think in secret
    /// are silent for minutes, and a call that is cut off then would be again.
    pub idle: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(120),
            idle: Duration::from_secs(300),
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
            .pool_max_idle_per_host(64);
        if !config.system_proxy {
            builder = builder.no_proxy();
        }
        let client = builder.build().map_err(|error| ConfigError::Client(fault::chain(&error)))?;
        Ok(Self { client, timeouts: config.timeouts })
    }

    /// Sends a request and waits for the head of its response.
    pub(crate) async fn send(&self, request: Request) -> Result<Response, Fault> {
        let limit = self.timeouts.first_byte;
        match timeout(limit, self.client.execute(request)).await {
            Ok(Ok(response)) => Ok(Response::new(response, self.timeouts.idle)),
            Ok(Err(error)) => Err(Fault::from(error)),
            Err(_) => Err(Fault::silent(Transport::FirstByteTimeout, "no response began", limit)),
        }
    }
}
