//! The journal in one stream.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use everturn_ports::{JournalError, NodeId};
use everturn_wire::ConversationId;
use tokio::time;

use crate::{
    ConnectError, Names, Options, base::Bases, cache::Cache, connect, entry::Entry, index::Index,
    label::Last, leader::Leader,
};

/// How often the last append is asked for again when an older one is returned than this process knows, and the pause before.
const OLD_ANSWERS: u32 = 20;
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// A journal in one JetStream stream, which any number of processes may use at the same time.
///
/// Readings contain every append that was acknowledged before they began: what this process wrote or read, as long as it is in its
/// cache, always; the rest, unless a server answers that was the leader until a moment ago, as when it was frozen.
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
    pub(crate) async fn last_entry(&self, id: &ConversationId) -> Result<Option<Entry>, JournalError> {
        let subject = self.leader.names().appends(id);
        for _ in 0..OLD_ANSWERS {
            let entry = self.leader.last(&subject).await?;
            let found = entry.as_ref().map_or(0, |entry| entry.sequence);
            if self.cache.newest(id) <= found {
                self.cache.saw(id, found);
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
}
