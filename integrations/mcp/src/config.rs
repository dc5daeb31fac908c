//! Configuration of a server.

use std::{
    collections::{BTreeMap, HashMap},
    fmt,
    path::PathBuf,
    sync::Arc,
    time::Duration,
};

use reqwest::{
    Url,
    header::{HeaderName, HeaderValue},
};

use crate::{LoginStore, MemoryLogins, Watchdog, name};

/// An MCP server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The first part of its tools' names. At most 32 letters, digits, `-` and single `_` between them.
    pub name: String,
    /// How to connect to it.
    pub connection: Connection,
    /// Whether to believe its annotations. If so, read-only tools run without approval, and idempotent tools run again
    /// after a crash.
    pub trust_annotations: bool,
    /// Timeouts.
    pub timeouts: Timeouts,
    /// Maximum size of a result, in bytes. Of a longer one, the beginning and the end are kept. Default: 256 KiB.
    pub max_result: usize,
    /// Ends its program if this process is killed. Default: none, and a program that ignores the end of its input keeps running.
    pub watchdog: Option<Arc<Watchdog>>,
    /// Where its login is kept. Default: in memory, for this server alone.
    pub logins: Arc<dyn LoginStore>,
}

impl ServerConfig {
    /// Creates a configuration with defaults.
    pub fn new(name: impl Into<String>, connection: Connection) -> Self {
        Self {
            name: name.into(),
            connection,
            trust_annotations: false,
            timeouts: Timeouts::default(),
            max_result: 256 << 10,
            watchdog: None,
            logins: Arc::new(MemoryLogins::default()),
        }
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// Returns an error if the name, the URL or a header is invalid.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !name::is_server_name(&self.name) {
            return Err(ConfigError::Name(self.name.clone()));
        }
        match &self.connection {
            Connection::Http(endpoint) => endpoint.request().map(drop),
            Connection::Command(_) => Ok(()),
        }
    }
}

/// How to connect to a server.
#[derive(Clone, Debug)]
pub enum Connection {
    /// A program to start. It communicates over its standard input and output.
    Command(Command),
    /// A streamable HTTP endpoint.
    Http(Endpoint),
}

/// A program to start.
///
/// It inherits only variables needed to find programs and the user's files (such as `PATH`, `HOME` and `LANG`), plus
/// those given here. It runs in its own process group, which is ended with the [`McpServer`](crate::McpServer).
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program: a path, or a name to look up in `PATH`.
    pub program: String,
    /// The arguments.
    pub args: Vec<String>,
    /// Additional environment variables.
    pub env: BTreeMap<String, Setting>,
    /// The working directory. Default: that of this process.
    pub cwd: Option<PathBuf>,
}

/// An HTTP endpoint.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// The URL, with `http` or `https`. It may contain a secret, so no message repeats it.
    pub url: String,
    /// Headers of every request.
    pub headers: BTreeMap<String, Setting>,
    /// How to log in, if it asks for that.
    pub oauth: Oauth,
}

/// How to log in at an endpoint. By default, everything is found out from it.
#[derive(Clone, Debug, Default)]
pub struct Oauth {
    /// The id of a client made at its authorization server. Default: one is registered with each login.
    pub client_id: Option<String>,
    /// That client's secret, if it has one.
    pub client_secret: Option<Setting>,
    /// What to ask for. Default: what the endpoint names.
    pub scopes: Vec<String>,
}

impl Endpoint {
    /// Parses the URL and the headers.
    pub(crate) fn request(&self) -> Result<(Url, HashMap<HeaderName, HeaderValue>), ConfigError> {
        let url = Url::parse(&self.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let url = url.ok_or(ConfigError::Url)?;
        let mut headers = HashMap::new();
        for (name, value) in &self.headers {
            let refused = || ConfigError::Header(name.clone());
            let mut value = HeaderValue::from_str(value.reveal()).map_err(|_| refused())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::try_from(name).map_err(|_| refused())?, value);
        }
        Ok((url, headers))
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("headers", &self.headers).finish_non_exhaustive()
    }
}

/// The value of a variable or header. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub enum Setting {
    /// A value that may be shown.
    Plain(String),
    /// A secret. It is redacted wherever the server repeats it, if it has at least 8 characters.
    Secret(String),
}

impl Setting {
    pub(crate) fn reveal(&self) -> &str {
        match self {
            Self::Plain(text) | Self::Secret(text) => text,
        }
    }
}

impl fmt::Debug for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Setting")
    }
}

/// Timeouts of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From the start until the tools are listed. Default: 60 s, because some programs are downloaded first.
    pub start: Duration,
    /// Maximum silence of a call. Progress resets it. Default: 60 s.
    pub idle: Duration,
    /// Maximum duration of a call. Default: 30 min.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            idle: Duration::from_secs(60),
            total: Duration::from_secs(30 * 60),
        }
    }
}

/// An invalid configuration.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The name cannot be part of a tool's name.
    #[error(
        "{0:?} cannot be the name of an MCP server, as it is the first part of its tools' names: use at most 32 letters, \
         digits, - and _, with no __, and no _ at its end"
    )]
    Name(String),
    /// The URL is invalid.
    #[error("its `url` must begin with http:// or https://")]
    Url,
    /// A header is invalid.
    #[error("{0:?} cannot be sent as a header: its name or value is not allowed")]
    Header(String),
    /// The HTTP client could not be created.
    #[error("cannot create the HTTP client: {0}")]
    Client(String),
}
