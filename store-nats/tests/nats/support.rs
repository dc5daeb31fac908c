//! Servers and journals for tests.

use std::{cell::Cell, collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use everturn_orchestrator::{
    Commit, Cursor, Definition, Head, Journal, StoredEvent, TurnRecord, Wait,
    kernel::{Effects, Millis, Prompt, Settings, Turn},
};
use everturn_sim::nats::{self, NatsConfig, NatsServer};
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::{Chunk, ConversationStatus, Role, StoredChunk, TurnId};
use tempfile::TempDir;

/// Held by tests with three servers: two such clusters starve each other, so that leaders are replaced and answer all the
/// same.
pub(crate) static CLUSTER: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A server with its directory.
pub(crate) struct Server {
    pub(crate) server: NatsServer,
    pub(crate) _directory: TempDir,
    journals: Cell<u32>,
}

impl Server {
    /// Starts a server with this addition to its configuration; `None` if there is none on this machine.
    pub(crate) async fn start(server: &str) -> Option<Self> {
        Self::start_with(NatsConfig { server, ..NatsConfig::default() }).await
    }

    pub(crate) async fn start_with(more: NatsConfig<'_>) -> Option<Self> {
        let program = nats::program()?;
        let directory = tempfile::tempdir().unwrap();
        let server = NatsServer::start(&program, directory.path(), more).await;
        Some(Self { server, _directory: directory, journals: Cell::new(0) })
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

pub(crate) fn head(number: u64) -> Head {
    Head {
        created_at: Millis(1),
        last_activity_at: Millis(number),
        title: "numbers".to_owned(),
        status: ConversationStatus::Idle,
        end_reason: None,
        model: None,
        end: Cursor::from_value(number),
        last_seq: number,
    }
}

/// Returns a commit that adds chunk and event `number`, with this text.
pub(crate) fn numbered(number: u64, text: &str) -> Commit {
    let text = text.to_owned();
    let event = StoredEvent {
        start: Cursor::from_value(number - 1),
        end: Cursor::from_value(number),
        json: Bytes::from(text.clone()),
    };
    let chunk =
        StoredChunk { seq: number, role: Role::User, chunk: Chunk::Text { text }.into(), supersedes: None };
    Commit::new(head(number)).chunk(chunk).event(event)
}

/// Returns a running turn.
pub(crate) fn turn() -> TurnRecord {
    let prompt = Prompt { text: "hi".to_owned(), images: Vec::new() };
    let turn = Turn::begin(TurnId::from("t"), Settings::default(), prompt, Millis(5), &mut Effects::new());
    TurnRecord {
        snapshot: turn.snapshot(),
        wait: Wait::Now,
        from: Cursor::from_value(0),
        first_seq: 1,
        definition: Definition::new("test/m"),
    }
}
