//! Servers and journals for tests.

use std::{cell::Cell, collections::BTreeMap, sync::Arc, time::Duration};

use everturn_orchestrator::Journal;
use everturn_sim::nats::{self, NatsConfig, NatsServer};
pub(crate) use everturn_sim::numbered::{head, numbered, turn};
use everturn_store_nats::{NatsJournal, Options};
use tempfile::TempDir;

/// Held by tests with three servers: two such clusters starve each other, so that leaders are replaced and answer all the
/// same.
pub(crate) static CLUSTER: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A server with its directory.
pub(crate) struct Server {
    pub(crate) server: NatsServer,
    pub(crate) directory: TempDir,
    journals: Cell<u32>,
}

impl Server {
    /// Starts a server with this addition to its configuration; `None` if there is none on this machine.
    pub(crate) async fn start(server: &str) -> Option<Self> {
        Self::start_with(NatsConfig { server, ..NatsConfig::default() }).await
    }

    pub(crate) async fn start_with(more: NatsConfig<'_>) -> Option<Self> {
        Self::start_in(tempfile::tempdir().unwrap(), more).await
    }

    pub(crate) async fn start_in(directory: TempDir, more: NatsConfig<'_>) -> Option<Self> {
        let program = nats::program()?;
        let server = NatsServer::start(&program, directory.path(), more).await;
        Some(Self { server, directory, journals: Cell::new(0) })
    }

    /// Returns options for a new journal.
    pub(crate) fn options(&self) -> Options {
        self.journals.set(self.journals.get() + 1);
        let mut options = Options::new([self.server.url()]);
        options.prefix = format!("t{}", self.journals.get());
        options
    }

    /// Returns options for a new journal that deletes appends as soon as their events were dropped.
    pub(crate) fn hasty(&self) -> Options {
        let mut options = self.options();
        options.settled_after = Duration::ZERO;
        options
    }

    /// Returns a new, empty journal.
    pub(crate) async fn journal(&self) -> Arc<dyn Journal> {
        Arc::new(NatsJournal::connect(&self.options()).await.unwrap())
    }

    /// Returns the subjects below the journal's prefix that match, with the number of their messages.
    pub(crate) async fn subjects(&self, journal: &NatsJournal, filter: &str) -> BTreeMap<String, usize> {
        let context = async_nats::jetstream::new(journal.client().clone());
        let stream = context.get_stream(journal.names().stream()).await.unwrap();
        let filter = format!("{}.{filter}", journal.names().stream().to_lowercase());
        let mut found = stream.info_with_subjects(filter).await.unwrap();
        let mut subjects = BTreeMap::new();
        while let Some(subject) = futures_util::StreamExt::next(&mut found).await {
            let (subject, count) = subject.unwrap();
            subjects.insert(subject, count);
        }
        subjects
    }
}
