//! The journal in one stream.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Cursor, Head, Journal, JournalError, NodeId, Page, Retention, Stored, StoredEvent, Unsealed,
    Version, Window, kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use tokio::time;

use crate::{
    ConnectError, Names, Options, base::Bases, cache::Cache, connect, entry::Entry, garbage, index::Index,
    label, label::Last, leader::Leader, record, walk,
};

/// How often the last append is asked for again when an older one is returned than this process knows, and the pause before.
const OLD_ANSWERS: u32 = 20;
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// A journal in one JetStream stream, which any number of processes may use at the same time.
///
/// Readings contain every append that was acknowledged before they began: to this process always; to others, unless a server
/// answers that was the leader until a moment ago, as when it was frozen.
#[derive(Debug)]
pub struct NatsJournal {
    pub(crate) leader: Leader,
    pub(crate) cache: Cache,
    pub(crate) index: Arc<Index>,
    pub(crate) bases: Bases,
    /// The last appends of conversations that have no more events to drop.
    pub(crate) dropped: Mutex<HashSet<u64>>,
    pub(crate) max_append: usize,
    pub(crate) settled_after: Duration,
    /// This journal, in the ids of its appends.
    node: NodeId,
    appends: AtomicU64,
    pub(crate) lost: Arc<AtomicU64>,
    /// The sequence up to which parts of large appends are known to be named.
    pub(crate) swept: AtomicU64,
}

impl NatsJournal {
    /// Connects to the servers, and creates the stream unless it exists.
    ///
    /// # Errors
    /// When the servers cannot be reached, refuse the credentials or are too old, or when the existing stream would lose
    /// data or lacks something. Then it is not changed.
    pub async fn connect(options: &Options) -> Result<Self, ConnectError> {
        let (leader, lost) = (connect::connect(options).await?, Arc::<AtomicU64>::default());
        let node = NodeId(uuid::Uuid::new_v4().simple().to_string());
        Ok(Self {
            bases: Bases::new(leader.clone(), lost.clone()),
            index: Arc::new(Index::new(leader.clone(), node.clone())),
            dropped: Mutex::default(),
            leader,
            cache: Cache::default(),
            max_append: options.max_append,
            settled_after: options.settled_after,
            node,
            appends: AtomicU64::default(),
            lost,
            swept: AtomicU64::default(),
        })
    }

    /// Returns the names of the stream and its subjects.
    pub fn names(&self) -> &Names {
        self.leader.names()
    }

    /// Returns the node that owns what this journal writes.
    pub fn node(&self) -> &NodeId {
        &self.node
    }

    /// Returns the connection, for other uses of the same servers.
    pub fn client(&self) -> &async_nats::Client {
        &self.leader.client
    }

    /// Deletes the parts of large appends that were never completed and are at least this old. Returns the number of
    /// appends. [`Journal::drop_ephemeral`] does this, too, for those that are an hour old.
    ///
    /// # Errors
    /// When the storage fails; another call continues.
    pub async fn sweep(&self, age: Duration) -> Result<usize, JournalError> {
        garbage::sweep(self, age).await
    }

    /// Saves what reading a conversation needs, so that it takes fewer requests. The writer does this now and then in the
    /// background.
    ///
    /// # Errors
    /// When the storage fails or the conversation is damaged.
    pub async fn save_bases(&self, id: &ConversationId) -> Result<(), JournalError> {
        self.bases.extend(id, None).await.map(drop)
    }

    /// Returns the number of appends whose answer was lost, so that the stream had to show whether they were stored.
    pub fn lost_answers(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns a new append's id.
    pub(crate) fn next_append(&self) -> String {
        format!("{}-{}", self.node, self.appends.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the last message of a conversation's appends. A server that was the leader until a moment ago may answer, too,
    /// without the latest ones: those that this process knows are waited for.
    async fn last_entry(&self, id: &ConversationId) -> Result<Option<Entry>, JournalError> {
        let subject = self.leader.names().appends(id);
        for _ in 0..OLD_ANSWERS {
            let entry = self.leader.last(&subject).await?;
            let found = entry.as_ref().map_or(0, |entry| entry.sequence);
            if self.cache.newest(id).is_none_or(|known| known <= found) {
                return Ok(entry);
            }
            tracing::debug!(conversation = %id, found, "a server answered without the latest append");
            time::sleep(ASK_AGAIN).await;
        }
        // It was removed elsewhere.
        self.cache.forget(id);
        self.leader.last(&subject).await
    }

    /// Returns the last append of a conversation; `None` if it does not exist. Costs a request.
    pub(crate) async fn last(&self, id: &ConversationId) -> Result<Option<Last>, JournalError> {
        let entry = self.last_entry(id).await?;
        let last = entry.map(|entry| entry.last(id)).transpose()?;
        Ok(last.filter(|last| !last.label.removes()))
    }

    /// Costs three requests, and one for each part of a large append.
    async fn load_last(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        let Some(entry) = self.last_entry(id).await? else { return Ok(None) };
        let label = entry.label(id)?;
        let Some(mut head) = label.head.clone() else { return Ok(None) };
        walk::check_last(&self.leader, id, &entry, &label).await?;
        let turn = match label.wait {
            None => None,
            Some(wait) => {
                let content = entry.content(&self.leader, id, &label).await?;
                Some(record::turn(&content, wait).map_err(|error| entry.unreadable(id, &error))?)
            }
        };
        self.retitle(id, &label.born, &mut head).await?;
        let owner = label::node(&label.id);
        self.cache.put(id, Last { version: entry.sequence, label });
        Ok(Some(Stored { version: Version(entry.sequence), head, turn, owner }))
    }
}

#[async_trait]
impl Journal for NatsJournal {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        self.append_commit(id, expected, commit).await
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.load_last(id).await
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.read_chunks(id, window).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.read_events(id, after, limit).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.read_metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.index.read(|index| index.page(&page)).await
    }

    async fn rename(&self, id: &ConversationId, title: String) -> Result<bool, JournalError> {
        self.set_title(id, title).await
    }

    async fn remove(&self, id: &ConversationId) -> Result<bool, JournalError> {
        self.remove_all(id).await
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<usize, JournalError> {
        self.remove_ephemeral(idle_since).await
    }

    async fn drop_events(&self, retention: Retention) -> Result<usize, JournalError> {
        self.drop_old_events(retention).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.index.read(|index| index.unsealed(before)).await
    }
}
