//! Conversations in a Postgres database.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use everturn_store_postgres::{OpenError, PostgresArchive, PostgresJournal};
use everturn_terminal::{Shared, Source};

use crate::config::Postgres;

/// Opens the database of a server.
pub(super) async fn open(postgres: &Postgres) -> Result<Arc<PostgresJournal>> {
    Ok(Arc::new(PostgresJournal::open(&postgres.options).await?))
}

/// Opens the database for a chat without a server.
pub(super) async fn open_for_chat(postgres: &Postgres) -> Result<Arc<PostgresJournal>> {
    let opened = PostgresJournal::open(&postgres.options).await;
    let journal = opened.map_err(|error| match error {
        OpenError::InUse { place, .. } => anyhow!(
            "another everturn uses {place}. If it is a server, talk through it with --server, e.g. --server \
             http://127.0.0.1:4777; else end it, or name a data file with --data"
        ),
        error => error.into(),
    })?;
    Ok(Arc::new(journal))
}

/// Returns where the conversations are. `deletes`: they are not only read.
pub(super) async fn source(postgres: &Postgres, deletes: bool) -> Result<Source> {
    if !deletes {
        let journal = Arc::new(PostgresArchive::open(&postgres.options).await?);
        return Ok(Source::Shared(Shared { journal, state: None }));
    }
    let journal = PostgresJournal::open(&postgres.options).await.map_err(|error| match error {
        OpenError::InUse { place, .. } => anyhow!(
            "a server uses {place}, and would go on writing to what is deleted: have it delete them, with --server, e.g. \
             --server http://127.0.0.1:4777"
        ),
        error => error.into(),
    })?;
    Ok(Source::Shared(Shared { journal: Arc::new(journal), state: None }))
}
