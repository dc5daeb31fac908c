//! Ports between processes that share a journal: live events, the list of conversations, commands and membership.
//!
//! Correctness rests on the journal's compare-and-append alone. A node drives a turn if it wrote the conversation's last
//! append; a node that was replaced learns of it when its next append is stale. What these ports say may be late, repeated or
//! lost: it decides how soon something happens, never whether it happens twice.

mod list;

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use everturn_wire::ConversationId;
use futures_core::stream::BoxStream;
use futures_util::stream;
use serde::{Deserialize, Serialize};

use crate::{Commit, JournalError, NodeId, StoredEvent, Version};

pub use list::{ListBus, ListEvent, Listed};

/// What a node needs to share a journal with others. Its journal must name this node as the owner of what it writes
/// ([`Stored::owner`](crate::Stored::owner)).
#[derive(Clone)]
pub struct Cluster {
    /// This node.
    pub node: NodeId,
    /// Its name, as shown to people.
    pub name: String,
    /// Live events of conversations that other nodes drive.
    pub live: Arc<dyn LiveBus>,
    /// Changes to the list of conversations by other nodes.
    pub list: Arc<dyn ListBus>,
    /// Commands from and to other nodes.
    pub commands: Arc<dyn CommandBus>,
    /// Which nodes are alive.
    pub members: Arc<dyn Membership>,
}

/// Carries the live events of conversations, and notices, between nodes. Best effort: followers notice gaps and read the
/// journal.
#[async_trait]
pub trait LiveBus: Send + Sync + 'static {
    /// Publishes streamed text that no append contains yet. Must not block.
    fn stream(&self, id: &ConversationId, streamed: Streamed);

    /// Follows a conversation. Everything published after this returns is in the stream, unless it is lost on the way.
    ///
    /// # Errors
    /// When the bus cannot be reached.
    async fn follow(&self, id: &ConversationId) -> Result<BoxStream<'static, LiveEvent>, JournalError>;

    /// Sends a notice of at most 16 KiB to all other nodes. Must not block. Default: sends nothing.
    fn tell(&self, _notice: Bytes) {}

    /// Receives the notices of other nodes from now on. Default: there are none.
    ///
    /// # Errors
    /// When the bus cannot be reached.
    async fn notices(&self) -> Result<BoxStream<'static, Bytes>, JournalError> {
        Ok(Box::pin(stream::pending()))
    }
}

/// What a follower of a conversation receives.
#[derive(Clone, Debug)]
pub enum LiveEvent {
    /// An append of another node. Published by the journal, shortly before or after it is acknowledged.
    Appended(Appended),
    /// Text streamed by another node that no append contains yet.
    Streamed(Streamed),
    /// Something was lost: read the journal.
    Missed,
    /// The conversation was deleted.
    Removed,
}

/// An append.
#[derive(Clone, Debug)]
pub struct Appended {
    /// The version that it follows.
    pub previous: Version,
    /// Its version.
    pub version: Version,
    /// The node that wrote it.
    pub owner: NodeId,
    /// What it wrote.
    pub commit: Box<Commit>,
}

/// Streamed text that no append contains yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Streamed {
    /// The version of the conversation that it follows.
    pub base: Version,
    /// The text, as events.
    pub events: Vec<StoredEvent>,
}

/// Carries commands to the node that drives a turn. Payloads are opaque JSON of at most 64 MiB.
#[async_trait]
pub trait CommandBus: Send + Sync + 'static {
    /// Sends a request to a node and waits for its reply.
    ///
    /// # Errors
    /// [`SendError::NoNode`] as soon as it is clear that the node does not exist, [`SendError::Unanswered`] after `within`.
    async fn send(&self, to: &NodeId, request: Bytes, within: Duration) -> Result<Bytes, SendError>;

    /// Receives the requests to this node. Call it once.
    ///
    /// # Errors
    /// When the bus cannot be reached.
    async fn receive(&self) -> Result<BoxStream<'static, Incoming>, JournalError>;
}

/// A request from another node.
pub struct Incoming {
    /// Its payload.
    pub request: Bytes,
    /// Sends the reply.
    pub reply: Box<dyn FnOnce(Bytes) + Send>,
}

/// Why a request was not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    /// The node does not exist, so the request had no effect.
    #[error("there is no such node")]
    NoNode,
    /// The node did not reply in time. It may still act on the request.
    #[error("the node did not reply in time")]
    Unanswered,
}

/// Knows which nodes are alive.
#[async_trait]
pub trait Membership: Send + Sync + 'static {
    /// Announces this node, or renews its lease. Called every few seconds.
    ///
    /// # Errors
    /// When the membership cannot be reached.
    async fn renew(&self, member: &Member) -> Result<(), JournalError>;

    /// Removes this node, so that others take over its turns at once.
    ///
    /// # Errors
    /// When the membership cannot be reached. The lease then lapses.
    async fn leave(&self) -> Result<(), JournalError>;

    /// Returns the nodes whose lease has not lapsed, ordered by id.
    ///
    /// # Errors
    /// When the membership cannot be reached.
    async fn members(&self) -> Result<Vec<Member>, JournalError>;
}

/// A node, as others see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// Its name, as shown to people.
    pub name: String,
    /// The version of its program.
    #[serde(default)]
    pub version: String,
    /// When it started, in epoch milliseconds.
    #[serde(default)]
    pub started_at: u64,
    /// The turns that it drives or is going to wake.
    #[serde(default)]
    pub turns: u64,
    /// The models and routes that it offers, at most 100.
    #[serde(default)]
    pub models: Vec<String>,
    /// The tool sources that it is configured with, at most 100.
    #[serde(default)]
    pub tool_sources: Vec<String>,
}
