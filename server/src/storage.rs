//! Where conversations are kept.

#[cfg(feature = "postgres")]
mod database;
#[cfg(feature = "nats")]
mod shared;

use std::{fs, path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use everturn_orchestrator::{Builder, Journal, StateStore};
use everturn_store_sqlite::SqliteJournal;
use everturn_terminal::Source;

#[cfg(feature = "postgres")]
use crate::config::Postgres;
use crate::config::{Config, Environment, Flags};

/// Where conversations are kept.
#[derive(Clone)]
pub(crate) enum Storage {
    /// In memory: they are lost when the process ends.
    Memory,
    /// In a file that only this process uses.
    File(Arc<SqliteJournal>),
    /// In a Postgres database that only this process uses.
    #[cfg(feature = "postgres")]
    Database(Arc<everturn_store_postgres::PostgresJournal>),
    /// In NATS, shared with other servers.
    #[cfg(feature = "nats")]
    Shared(Box<shared::Shared>),
}

/// Returns where the conversations of a server with this configuration are, which need not run. `deletes`: they are not only
/// read.
pub(crate) async fn source(
    flags: &Flags,
    environment: &Environment<'_>,
    #[cfg_attr(not(feature = "postgres"), allow(unused_variables, reason = "only a database asks"))]
    deletes: bool,
) -> Result<Source> {
    // Without their features, an error says so.
    match (Config::postgres(flags, environment)?, Config::cluster(flags, environment)?) {
        #[cfg(feature = "postgres")]
        (Some(postgres), _) => database::source(&postgres, deletes).await,
        #[cfg(feature = "nats")]
        (_, Some(cluster)) => shared::Shared::source(&cluster).await,
        _ => Ok(Source::File(Config::data(flags, environment)?)),
    }
}

/// Opens the file that conversations are kept in, and creates it if necessary.
pub(crate) fn file(path: &Path) -> Result<Arc<SqliteJournal>> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory {
        fs::create_dir_all(directory).with_context(|| {
            format!(
                "cannot create {} for conversations: choose another path with --data",
                directory.display()
            )
        })?;
    }
    Ok(Arc::new(SqliteJournal::open(path)?))
}

impl Storage {
    /// Opens the configured storage. `address`: names this server if nothing else does.
    pub(crate) async fn open(
        config: &Config,
        #[cfg_attr(
            not(feature = "nats"),
            allow(unused_variables, reason = "only members of a cluster have names")
        )]
        address: &str,
    ) -> Result<Self> {
        #[cfg(feature = "nats")]
        if let Some(cluster) = &config.cluster {
            return Ok(Self::Shared(Box::new(shared::Shared::join(cluster, address).await?)));
        }
        #[cfg(feature = "postgres")]
        if let Some(postgres) = &config.postgres {
            return Ok(Self::Database(database::open(postgres).await?));
        }
        Ok(match &config.data {
            Some(path) => Self::File(file(path)?),
            None => Self::Memory,
        })
    }

    /// Opens the database for a chat without a server.
    #[cfg(feature = "postgres")]
    pub(crate) async fn of_chat(postgres: &Postgres) -> Result<Self> {
        Ok(Self::Database(database::open_for_chat(postgres).await?))
    }

    /// Returns the journal; `None` = in memory.
    pub(crate) fn journal(&self) -> Option<Arc<dyn Journal>> {
        self.stores().map(|(journal, _)| journal)
    }

    /// Returns where state outside conversations is kept; `None` = in memory.
    pub(crate) fn state(&self) -> Option<Arc<dyn StateStore>> {
        self.stores().map(|(_, state)| state)
    }

    fn stores(&self) -> Option<(Arc<dyn Journal>, Arc<dyn StateStore>)> {
        match self {
            Self::Memory => None,
            Self::File(journal) => Some((journal.clone(), journal.clone())),
            #[cfg(feature = "postgres")]
            Self::Database(journal) => Some((journal.clone(), journal.clone())),
            #[cfg(feature = "nats")]
            Self::Shared(shared) => Some(shared.stores()),
        }
    }

    /// Returns where conversations are, if that is a database.
    pub(crate) fn database(&self) -> Option<String> {
        #[cfg(feature = "postgres")]
        if let Self::Database(journal) = self {
            return Some(journal.place().to_string());
        }
        None
    }

    /// Has the orchestrator keep its conversations here.
    pub(crate) fn keep(self, builder: Builder) -> Builder {
        #[cfg(feature = "nats")]
        let builder = if let Self::Shared(shared) = &self { shared.join_in(builder) } else { builder };
        match self.stores() {
            Some((journal, state)) => builder.journal(journal).state(state),
            None => builder,
        }
    }
}
