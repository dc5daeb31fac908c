//! Errors: what went wrong, where, and what to do about it. No secret is in any of them.

use std::{fmt, path::PathBuf};

use everturn_ports::JournalError;
use everturn_wire::ConversationId;

/// What is said of a server that was replaced.
pub(crate) const OUTDATED: &str = "its answers are older than what was stored";

/// Where a journal is: its servers, without credentials, and its stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) servers: String,
    pub(crate) stream: String,
}

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// An option is not valid.
    #[error("{0}")]
    Option(String),
    /// A file with credentials or certificates cannot be used.
    #[error("cannot use {}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// No server could be reached.
    #[error("cannot connect to NATS at {servers}: {what}")]
    Unreachable {
        /// The servers.
        servers: String,
        /// What happened.
        what: String,
    },
    /// The servers refused the credentials.
    #[error("NATS at {servers} refuses the credentials: check the user, the token or the credentials file")]
    Refused {
        /// The servers.
        servers: String,
    },
    /// The server is too old.
    #[error(
        "the NATS server at {servers} has version {found}; 2.12 or newer is needed, because older ones can accept two appends at one version, or cannot expire what marks a deleted conversation: upgrade it (2.15 or newer is recommended)"
    )]
    TooOld {
        /// The servers.
        servers: String,
        /// The server's version.
        found: String,
    },
    /// JetStream is not enabled or not available.
    #[error("JetStream at {0} is not available: {1}")]
    JetStream(Place, String),
    /// The stream would lose data, or lacks something that the journal needs.
    #[error("the stream {place} cannot hold a journal: {setting}; change it with `nats stream edit`, or choose another prefix", place = .place, setting = .setting)]
    Setting {
        /// The stream.
        place: Place,
        /// The setting, its value and the value needed.
        setting: String,
    },
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.stream, self.servers)
    }
}

impl Place {
    fn says(&self, what: &str) -> String {
        format!(
            "stream {self}: {what}; check that a majority of the servers is running, and that their disks have room (one whose \
             disk was full has to be restarted)"
        )
    }

    /// Returns the error when it is unknown whether something was written.
    pub(crate) fn unknown(&self, what: &str) -> JournalError {
        JournalError::Unknown(self.says(what))
    }
}

/// Returns the error when nothing was written or read.
pub(crate) fn failed(place: &Place, what: &str) -> JournalError {
    JournalError::Storage(place.says(what))
}

/// Returns the error when what is stored is not what was written.
pub(crate) fn damaged(id: &ConversationId, what: &str) -> JournalError {
    JournalError::Storage(format!("conversation {id} is damaged: {what}; restore the stream from a backup"))
}

/// Returns the error when a newer version wrote what is stored.
pub(crate) fn newer(id: &ConversationId, what: &str) -> JournalError {
    JournalError::Storage(format!("conversation {id} cannot be used by this version: {what}"))
}
