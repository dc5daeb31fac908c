//! The Postgres database that keeps conversations.

#[cfg(feature = "postgres")]
mod options;

use std::path::PathBuf;

use anyhow::{Result, bail};

use super::{
    Environment, Flags, Hidden,
    file::{PostgresTable, Source},
};

/// How to use the database.
#[derive(Debug)]
#[cfg_attr(
    not(all(feature = "otlp", feature = "postgres")),
    allow(dead_code, reason = "this build refuses to use one, or exports no traces to remove secrets from")
)]
pub(crate) struct Postgres {
    #[cfg(feature = "postgres")]
    pub(crate) options: everturn_store_postgres::Options,
    /// What must not be printed.
    pub(super) secrets: Vec<Hidden>,
    /// The file with the password.
    pub(super) secret_file: Option<PathBuf>,
}

impl Postgres {
    /// Returns how to use the database, if there is one.
    pub(super) fn resolve(
        flags: &Flags,
        environment: &Environment<'_>,
        table: PostgresTable,
        source: &Source,
    ) -> Result<Option<Self>> {
        if flags.data.is_some() || flags.memory || flags.cluster.is_some() {
            // The command line says where conversations are kept instead.
            return Ok(None);
        }
        let named = flags.postgres.clone().or_else(|| environment.get("EVERTURN_POSTGRES"));
        let of_table = table.url.as_ref().map(|url| url.reveal().to_owned());
        let Some(url) = named.or(of_table) else {
            if table.is_empty() {
                return Ok(None);
            }
            bail!("[postgres] has no `url`: write it as postgres://user@host:5432/database");
        };
        Self::at(url, table, environment, source).map(Some)
    }

    #[cfg(feature = "postgres")]
    fn at(url: String, table: PostgresTable, environment: &Environment<'_>, source: &Source) -> Result<Self> {
        options::of(url, table, environment, source)
    }

    #[cfg(not(feature = "postgres"))]
    fn at(_: String, _: PostgresTable, _: &Environment<'_>, _: &Source) -> Result<Self> {
        bail!(crate::absent::absent("Postgres", "postgres"))
    }
}

/// Whether the table contains a password.
pub(super) fn has_secret(table: &PostgresTable) -> bool {
    let of_url = table.url.as_ref().and_then(|url| password_of(url.reveal()));
    table.password.is_some() || of_url.is_some()
}

/// Returns the password in a URL.
fn password_of(url: &str) -> Option<Hidden> {
    let (login, _) = url.split_once("://")?.1.rsplit_once('@')?;
    Hidden::new(login.split_once(':')?.1)
}
