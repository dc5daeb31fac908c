//! Where the database is, and how to use it.

use std::{fmt, path::PathBuf, time::Duration};

/// How to connect, and what to create. Formatting it shows no secret.
#[derive(Clone)]
pub struct Options {
    /// The database, as `postgres://user@host:5432/database`. May contain a password, several hosts, and parameters such as
    /// `sslmode=require`.
    pub url: String,
    /// The password, unless the URL contains one.
    pub password: Option<String>,
    /// A file with certificates of authorities to trust besides the system's.
    pub authorities: Option<PathBuf>,
    /// The schema of the journal's tables, created unless it exists. Journals in different schemas share nothing.
    pub schema: String,
    /// How long connecting may take, including a restart of the database.
    pub connect_within: Duration,
    /// How long opening may wait for another server that is about to end.
    pub lock_within: Duration,
    /// How long the answer to one statement may take. Large appends get more.
    pub answer_within: Duration,
    /// How long an operation is repeated that fails because the connection is lost.
    pub give_up_after: Duration,
    /// Maximum size of an append, in bytes.
    pub max_append: usize,
}

impl Options {
    /// Creates options with defaults for everything but the database.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            password: None,
            authorities: None,
            schema: "everturn".to_owned(),
            connect_within: Duration::from_secs(15),
            lock_within: Duration::from_secs(5),
            answer_within: Duration::from_secs(10),
            give_up_after: Duration::from_secs(10),
            max_append: 256 << 20,
        }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Before the last @ are a user and a password. A parameter may be a password, too.
        let place = self.url.rsplit('@').next().unwrap_or_default().split('?').next().unwrap_or_default();
        f.debug_struct("Options")
            .field("url", &place)
            .field("authorities", &self.authorities)
            .field("schema", &self.schema)
            .field("connect_within", &self.connect_within)
            .field("lock_within", &self.lock_within)
            .field("answer_within", &self.answer_within)
            .field("give_up_after", &self.give_up_after)
            .field("max_append", &self.max_append)
            .finish_non_exhaustive()
    }
}
