//! Where conversations are kept.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use everturn_orchestrator::{Builder, Cluster, Journal};
use everturn_store_nats::{NatsJournal, NatsState};
use everturn_store_postgres::{OpenError, PostgresArchive, PostgresJournal};
use everturn_store_sqlite::SqliteJournal;
use everturn_terminal::Source;

use crate::{
    assembly,
    config::{Config, Environment, Flags},
};

/// Where conversations are kept.
#[derive(Clone)]
pub(crate) enum Storage {
    /// In memory: they are lost when the process ends.
    Memory,
    /// In a file that only this process uses.
    File(Arc<SqliteJournal>),
    /// In a Postgres database that only this process uses.
    Database(Arc<PostgresJournal>),
    /// In NATS, shared with other servers.
    Shared(Box<Shared>),
}

/// Conversations that several servers share.
#[derive(Clone)]
pub(crate) struct Shared {
    journal: Arc<NatsJournal>,
    state: Arc<NatsState>,
    cluster: Cluster,
}

/// Returns where the conversations of a server with this configuration are, which need not run. `deletes`: they are not only
/// read.
pub(crate) async fn source(flags: &Flags, environment: &Environment<'_>, deletes: bool) -> Result<Source> {
    let shared = |journal, state| Source::Shared(everturn_terminal::Shared { journal, state });
    if let Some(postgres) = Config::postgres(flags, environment)? {
        if !deletes {
            return Ok(shared(Arc::new(PostgresArchive::open(&postgres.options).await?), None));
        }
        let journal = PostgresJournal::open(&postgres.options).await.map_err(|error| match error {
            OpenError::InUse { place, .. } => anyhow!(
                "a server uses {place}, and would go on writing to what is deleted: have it delete them, with --server, e.g. \
                 --server http://127.0.0.1:4777"
            ),
            error => error.into(),
        })?;
        return Ok(shared(Arc::new(journal), None));
    }
    let Some(cluster) = Config::cluster(flags, environment)? else {
        return Ok(Source::File(Config::data(flags, environment)?));
    };
    let journal = NatsJournal::connect(&cluster.options).await?;
    let state = Arc::new(journal.state().await?);
    Ok(shared(Arc::new(journal), Some(state)))
}

impl Storage {
    /// Opens the configured storage. `address`: names this server if nothing else does.
    pub(crate) async fn open(config: &Config, address: &str) -> Result<Self> {
        if let Some(cluster) = &config.cluster {
            let journal = NatsJournal::connect(&cluster.options).await?;
            let name = cluster.name.clone().unwrap_or_else(|| address.to_owned());
            let (state, cluster) = (journal.state().await?, journal.cluster(&name).await?);
            return Ok(Self::Shared(Box::new(Shared {
                journal: Arc::new(journal),
                state: Arc::new(state),
                cluster,
            })));
        }
        if let Some(postgres) = &config.postgres {
            return Ok(Self::Database(Arc::new(PostgresJournal::open(&postgres.options).await?)));
        }
        Ok(match &config.data {
            Some(path) => Self::File(assembly::journal(path)?),
            None => Self::Memory,
        })
    }

    /// Returns the journal; `None` = in memory.
    pub(crate) fn journal(self) -> Option<Arc<dyn Journal>> {
        match self {
            Self::Memory => None,
            Self::File(journal) => Some(journal),
            Self::Database(journal) => Some(journal),
            Self::Shared(shared) => Some(shared.journal),
        }
    }

    /// Returns where conversations are, if that is a database.
    pub(crate) fn database(&self) -> Option<String> {
        match self {
            Self::Database(journal) => Some(journal.place().to_string()),
            Self::Memory | Self::File(_) | Self::Shared(_) => None,
        }
    }

    /// Has the orchestrator keep its conversations here.
    pub(crate) fn keep(self, builder: Builder) -> Builder {
        match self {
            Self::Memory => builder,
            Self::File(journal) => builder.journal(journal.clone()).state(journal),
            Self::Database(journal) => builder.journal(journal.clone()).state(journal),
            Self::Shared(shared) => {
                builder.journal(shared.journal).state(shared.state).cluster(shared.cluster)
            }
        }
    }
}
