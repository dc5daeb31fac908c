//! Where the servers are, and how to use them.

use std::{fmt, path::PathBuf, time::Duration};

/// How to connect, and what to create. Formatting it shows no secret.
#[derive(Clone)]
#[non_exhaustive]
pub struct Options {
    /// The servers, as `nats://host:port` or `tls://host:port`. One is enough: it names the others of its cluster.
    pub servers: Vec<String>,
    /// How the client identifies itself.
    pub login: Login,
    /// TLS, beyond what the servers require.
    pub tls: Tls,
    /// The beginning of the names of the stream and its subjects. Journals with different prefixes share nothing.
    pub prefix: String,
    /// Number of copies of the stream. `None` = 3 if the servers form a cluster, otherwise 1. An existing stream keeps its
    /// number.
    pub replicas: Option<usize>,
    /// How long connecting may take, including the election of a leader.
    pub connect_within: Duration,
    /// How long the answer to one request may take before the request is repeated.
    pub answer_within: Duration,
    /// How long a failing operation is repeated. An election takes 4 to 9 seconds.
    pub give_up_after: Duration,
    /// Maximum size of an append, in bytes.
    pub max_append: usize,
    /// Age from which appends are deleted if their events were dropped. Must be far longer than `give_up_after`: then no
    /// writer is still asking whether its append was stored.
    pub settled_after: Duration,
}

/// How the client identifies itself. Formatting it shows no secret.
#[derive(Clone, Default)]
pub enum Login {
    /// Not at all, or by the user in the server's URL.
    #[default]
    None,
    /// With a file that has a JWT and the seed of an NKey.
    CredentialsFile(PathBuf),
    /// With a user and a password.
    UserPassword {
        /// The user.
        user: String,
        /// The password.
        password: String,
    },
    /// With a token.
    Token(String),
    /// With the seed of an NKey.
    NkeySeed(String),
}

/// TLS, beyond what the servers require.
#[derive(Clone, Debug, Default)]
pub struct Tls {
    /// Whether unencrypted connections are refused.
    pub required: bool,
    /// Whether the handshake comes before the server's greeting, as servers with `handshake_first` need it.
    pub first: bool,
    /// A file with certificates of authorities to trust besides the system's.
    pub authorities: Option<PathBuf>,
    /// Files with the client's certificate and its key.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

impl Options {
    /// Creates options with defaults for everything but the servers.
    pub fn new(servers: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self {
            servers: servers.into_iter().map(Into::into).collect(),
            login: Login::None,
            tls: Tls::default(),
            prefix: "ev".to_owned(),
            replicas: None,
            connect_within: Duration::from_secs(15),
            answer_within: Duration::from_secs(2),
            give_up_after: Duration::from_secs(10),
            max_append: 320 << 20,
            settled_after: Duration::from_secs(10 * 60),
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Before the @ are a user and a password, or a token.
        let servers: Vec<_> =
            self.servers.iter().map(|url| url.rsplit('@').next().unwrap_or_default()).collect();
        f.debug_struct("Options")
            .field("servers", &servers)
            .field("login", &self.login)
            .field("tls", &self.tls)
            .field("prefix", &self.prefix)
            .field("replicas", &self.replicas)
            .field("connect_within", &self.connect_within)
            .field("answer_within", &self.answer_within)
            .field("give_up_after", &self.give_up_after)
            .field("max_append", &self.max_append)
            .field("settled_after", &self.settled_after)
            .finish()
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("None"),
            Self::CredentialsFile(path) => f.debug_tuple("CredentialsFile").field(path).finish(),
            Self::UserPassword { user, .. } => write!(f, "UserPassword {{ user: {user:?}, .. }}"),
            Self::Token(_) => f.write_str("Token(..)"),
            Self::NkeySeed(_) => f.write_str("NkeySeed(..)"),
        }
    }
}
