//! Errors: what went wrong, where, and what to do about it. No secret is in any of them.

use std::{error::Error as _, fmt, path::PathBuf};

use everturn_ports::JournalError;
use tokio_postgres::{
    Error,
    error::{DbError, Severity, SqlState},
};

/// Where a journal is, without credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) hosts: String,
    pub(crate) database: String,
    pub(crate) schema: String,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Postgres database {} at {}, schema {}", self.database, self.hosts, self.schema)
    }
}

/// Why a journal cannot be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// An option is not valid.
    #[error("{0}")]
    Option(String),
    /// A file with certificates cannot be used.
    #[error("cannot use {}: {what}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The database could not be reached.
    #[error(
        "cannot connect to {place}: {what}; check that Postgres is running and accepts connections there"
    )]
    Unreachable {
        /// The database.
        place: Place,
        /// What happened.
        what: String,
    },
    /// The database refused the user or the password.
    #[error("{place} refuses the login: {what}; check the user, the password and pg_hba.conf")]
    Refused {
        /// The database.
        place: Place,
        /// What Postgres says.
        what: String,
    },
    /// TLS failed.
    #[error(
        "cannot connect to {place} with TLS: {what}; name the authority's certificate with `ca_file`, or add ?sslmode=disable to the URL if the network is trusted"
    )]
    Tls {
        /// The database.
        place: Place,
        /// What happened.
        what: String,
    },
    /// Another server uses it.
    #[error(
        "{place} is in use by another Everturn server ({by}): stop that one, or choose another database or schema. One server uses a database; several servers share conversations over NATS only"
    )]
    InUse {
        /// The database.
        place: Place,
        /// What is known of the other server.
        by: String,
    },
    /// The database cannot hold a journal.
    #[error("{place} cannot hold a journal: {why}")]
    Setting {
        /// The database.
        place: Place,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Nothing was kept there yet.
    #[error(
        "{place} is empty: nothing was kept there yet; name another database or schema, or start a server"
    )]
    Empty {
        /// The database.
        place: Place,
    },
    /// The schema has other tables.
    #[error("{place} is not an Everturn journal, but has other tables: choose another schema")]
    Foreign {
        /// The database.
        place: Place,
    },
    /// Written by a newer version.
    #[error(
        "{place} was written by a newer version of Everturn (format {found}; this one knows up to {known}): upgrade Everturn, or choose another database"
    )]
    TooNew {
        /// The database.
        place: Place,
        /// Its format.
        found: i64,
        /// The latest format that is known.
        known: i64,
    },
    /// A statement failed.
    #[error("cannot open {place}: {what}")]
    Database {
        /// The database.
        place: Place,
        /// What happened, and what to do.
        what: String,
    },
}

/// Why a statement, or a group of them, failed.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The connection was lost: what was sent may or may not have been done.
    Lost(String),
    /// Nothing was done, and the same may succeed at once.
    Busy(String),
    /// Nothing was done.
    Failed(String),
    /// Nothing was done, and the same would fail again.
    Unfit(String),
    /// Another server uses the database now.
    Replaced,
}

impl Failure {
    /// Returns what a row lacks.
    pub(crate) fn damaged(what: impl fmt::Display) -> Self {
        Self::Failed(format!(
            "what is stored does not fit what this version reads ({what}): upgrade, or restore a backup"
        ))
    }

    /// Returns the error of a journal's method that was `doing` something, such as "append to". `lost`: something may
    /// have been written.
    pub(crate) fn journal(self, doing: &str, place: &Place, lost: bool) -> JournalError {
        let at = format!("cannot {doing} {place}");
        match self {
            Self::Lost(what) if lost => {
                JournalError::Unknown(format!("{at}: {what}; check that Postgres is running"))
            }
            Self::Lost(what) => {
                JournalError::Storage(format!("{at}: {what}; check that Postgres is running"))
            }
            Self::Replaced if lost => JournalError::Unknown(format!("{at}: {REPLACED}")),
            Self::Replaced => JournalError::Storage(format!("{at}: {REPLACED}")),
            Self::Busy(what) | Self::Failed(what) if lost => JournalError::Unknown(format!("{at}: {what}")),
            Self::Busy(what) | Self::Failed(what) => JournalError::Storage(format!("{at}: {what}")),
            Self::Unfit(what) => JournalError::Refused(format!("{at}: {what}")),
        }
    }

    /// Returns its text.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Lost(what) | Self::Busy(what) | Self::Failed(what) | Self::Unfit(what) => what,
            Self::Replaced => REPLACED,
        }
    }
}

const REPLACED: &str = "another Everturn server has taken this database over: stop one of the two";

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let Some(db) = error.as_db_error() else { return Self::Lost(text(&error)) };
        let what = format!("{}; {}", message(db), advice(db.code()));
        let class = &db.code().code()[..2];
        match class {
            // The session ends; what it was doing may have been done.
            _ if matches!(db.parsed_severity(), Some(Severity::Fatal | Severity::Panic)) => {
                Self::Lost(message(db))
            }
            "08" => Self::Lost(message(db)),
            "57" if *db.code() != SqlState::QUERY_CANCELED => Self::Lost(message(db)),
            "40" => Self::Busy(what),
            "55" if *db.code() == SqlState::LOCK_NOT_AVAILABLE => Self::Busy(what),
            "22" | "23" | "54" => Self::Unfit(what),
            _ => Self::Failed(what),
        }
    }
}

impl From<everturn_store_rows::Unfit> for Failure {
    fn from(error: everturn_store_rows::Unfit) -> Self {
        Self::Unfit(error.0)
    }
}

fn message(db: &DbError) -> String {
    // One line, without the values that a detail may quote.
    format!("{} (SQLSTATE {})", db.message().replace('\n', " "), db.code().code())
}

/// Returns the text of an error that is not the database's.
pub(crate) fn text(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(db), _) => message(db),
        (None, Some(cause)) if !error.to_string().contains(&cause.to_string()) => format!("{error}: {cause}"),
        (None, _) => error.to_string(),
    }
}

fn advice(code: &SqlState) -> &'static str {
    match *code {
        SqlState::DISK_FULL => "free space on the disk of the database",
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            "the database is read-only: connect to the primary, or make it writable"
        }
        SqlState::INSUFFICIENT_PRIVILEGE => "let this user create and own the journal's schema",
        SqlState::UNDEFINED_TABLE | SqlState::UNDEFINED_COLUMN | SqlState::INVALID_SCHEMA_NAME => {
            "the journal's tables were changed: restore a backup"
        }
        SqlState::QUERY_CANCELED | SqlState::LOCK_NOT_AVAILABLE => "look at what else the database is doing",
        SqlState::T_R_DEADLOCK_DETECTED | SqlState::T_R_SERIALIZATION_FAILURE => "try again",
        SqlState::UNIQUE_VIOLATION => "a place in the conversation is taken already: load it again",
        SqlState::OUT_OF_MEMORY | SqlState::TOO_MANY_CONNECTIONS => "give the database more room",
        _ => "look at the log of the database",
    }
}
