//! How a server is reached, and how long it is waited for.

use std::{collections::BTreeMap, fmt, path::PathBuf, time::Duration};

use crate::{http, name};

/// An MCP server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    /// The first part of its tools' names: letters, digits, `-` and single `_` between them, at most 32.
    pub name: String,
    /// How it is reached.
    pub connection: Connection,
    /// Whether what it claims about its tools is believed: then tools that only read run without being asked about, and
    /// those that may run twice do so after a crash.
    pub trust_annotations: bool,
    /// How long it is waited for.
    pub timeouts: Timeouts,
    /// The most that is kept of a result, in bytes: of a longer one the beginning and the end. 256 KiB unless set.
    pub max_result: usize,
}

impl ServerConfig {
    /// A server of that name, with nothing else set.
    pub fn new(name: impl Into<String>, connection: Connection) -> Self {
        Self {
            name: name.into(),
            connection,
            trust_annotations: false,
            timeouts: Timeouts::default(),
            max_result: 256 << 10,
        }
    }

    /// Whether it can be started.
    ///
    /// # Errors
    /// When its name, its address or a header is not allowed.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !name::is_server_name(&self.name) {
            return Err(ConfigError::Name(self.name.clone()));
        }
        match &self.connection {
            Connection::Http(endpoint) => http::request(endpoint).map(drop),
            Connection::Command(_) => Ok(()),
        }
    }
}

/// How a server is reached.
#[derive(Clone, Debug)]
pub enum Connection {
    /// A program that is started, and spoken with over its standard input and output.
    Command(Command),
    /// An address that speaks streamable HTTP.
    Http(Endpoint),
}

/// A program to start.
///
/// It is given no variables of this process but those that programs need to be found and to find their user's files (such
/// as `PATH`, `HOME` and `LANG`), and the ones named here. It gets a process group of its own, which ends with the
/// [`McpServer`](crate::McpServer).
#[derive(Clone, Debug, Default)]
pub struct Command {
    /// The program: a path, or a name that is looked for in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it is given.
    pub env: BTreeMap<String, Setting>,
    /// The directory it runs in. This process's own unless set.
    pub cwd: Option<PathBuf>,
}

/// An address to connect to.
#[derive(Clone, Default)]
pub struct Endpoint {
    /// With `http` or `https`. It may hold a secret: no message repeats it.
    pub url: String,
    /// Sent with every request.
    pub headers: BTreeMap<String, Setting>,
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Endpoint").field("headers", &self.headers).finish_non_exhaustive()
    }
}

/// A value of a variable or a header. `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub enum Setting {
    /// One that may be seen.
    Plain(String),
    /// One that nobody is shown: where the server repeats it, it is replaced. Shorter than 8 characters, it is not.
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

/// How long a server is waited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// From its start until it has listed its tools. 60 s unless set: some programs are downloaded first.
    pub start: Duration,
    /// How long a call may be silent: progress counts as a sign of life. 60 s unless set.
    pub idle: Duration,
    /// How long a call may take, however well it goes. 30 min unless set.
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

/// A server that cannot be configured like that.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// Its name cannot be part of a tool's name.
    #[error(
        "{0:?} cannot be the name of an MCP server, as it is the first part of its tools' names: use at most 32 letters, \
         digits, - and _, with no __, and no _ at its end"
    )]
    Name(String),
    /// Its address is none.
    #[error("its `url` must be an address with http:// or https://")]
    Url,
    /// A header that HTTP does not allow.
    #[error("{0:?} cannot be sent as a header: its name or value is not allowed")]
    Header(String),
    /// There can be no HTTP client.
    #[error("there is no HTTP client: {0}")]
    Client(String),
}
