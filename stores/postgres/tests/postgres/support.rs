//! Servers and journals for tests.

use std::{cell::Cell, sync::Arc, time::Duration};

use everturn_orchestrator::{Cursor, Journal, Moment, TurnRecord, Wait, kernel::Millis};
pub(crate) use everturn_sim::numbered::{head, numbered, turn};
use everturn_sim::postgres::{self, PostgresServer};
use everturn_store_postgres::{Options, PostgresJournal};
use everturn_wire::ConversationId;
use tempfile::TempDir;

/// A server with its directory.
pub(crate) struct Server {
    pub(crate) server: PostgresServer,
    _directory: TempDir,
    journals: Cell<u32>,
}

impl Server {
    /// Starts a server; `None` if there is none on this machine.
    pub(crate) async fn start() -> Option<Self> {
        Self::start_with(&[]).await
    }

    pub(crate) async fn start_with(settings: &[&str]) -> Option<Self> {
        let programs = postgres::programs()?;
        let directory = tempfile::tempdir().unwrap();
        let server = PostgresServer::start(&programs, directory.path(), settings).await;
        Some(Self { server, _directory: directory, journals: Cell::new(0) })
    }

    /// Returns options for a new journal.
    pub(crate) fn options(&self) -> Options {
        self.journals.set(self.journals.get() + 1);
        let mut options = Options::new(self.server.url());
        options.schema = format!("journal_{}", self.journals.get());
        options.lock_within = Duration::ZERO;
        options
    }

    /// Returns a new, empty journal.
    pub(crate) async fn journal(&self) -> Arc<dyn Journal> {
        Arc::new(PostgresJournal::open(&self.options()).await.unwrap())
    }

    /// Runs SQL in the schema of the first journal.
    pub(crate) fn sql(&self, sql: &str) -> String {
        self.server.sql(&format!("SET search_path TO journal_1; {sql}"))
    }
}

pub(crate) fn id() -> ConversationId {
    "c".into()
}

/// Returns a turn that waits.
pub(crate) fn waiting(at: u64) -> TurnRecord {
    TurnRecord { wait: Wait::Until(Moment { at: Millis(at), decided_ms: at }), ..turn() }
}

/// Returns the events of the conversation.
pub(crate) async fn texts(journal: &PostgresJournal) -> Vec<String> {
    let events = journal.events(&id(), Cursor::default(), 999).await.unwrap();
    events.iter().map(|event| String::from_utf8(event.json.to_vec()).unwrap()).collect()
}
