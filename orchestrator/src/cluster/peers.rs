//! The other nodes, as this one sees them.

use std::{
    collections::{BTreeSet, HashSet, VecDeque},
    pin::pin,
    sync::{Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use everturn_kernel::Millis;
use everturn_wire::ConversationId;
use futures_util::future::{Either, select};
use sha2::{Digest as _, Sha256};
use tokio::sync::Notify;

use super::{Cluster, Command, Reply, Request, SendError, Undecided};
use crate::{Cursor, NodeId, Version, new_id};

/// How long a node may take to answer that it is alive. Then it counts as dead or frozen.
const ALIVE_WITHIN: Duration = Duration::from_millis(900);

/// How long a node that is alive may take to carry out a command. It may have to wait for its journal.
const DONE_WITHIN: Duration = Duration::from_secs(30);

/// How long a node may take to take over a turn that another one cannot continue.
const CONTINUED_WITHIN: Duration = Duration::from_secs(2);

/// Number of commands that a node remembers, to notice one that arrives twice. Copies arrive within seconds.
const MAX_ARRIVED: usize = 4_096;

/// The other nodes, as this one sees them.
pub(crate) struct Peers {
    pub(crate) cluster: Cluster,
    known: Mutex<Known>,
    /// Turns that had no owner when this node last looked at all of them.
    orphans: Mutex<HashSet<ConversationId>>,
    /// The latest commands of other nodes.
    pub(crate) arrived: Arrived,
    /// Turns that this node is about to take over.
    pub(crate) undecided: Undecided,
    /// When this node first announced itself.
    started_at: OnceLock<Millis>,
    /// Notified when a node has left.
    pub(crate) look_now: Notify,
    /// Notified when this node has looked for turns without an owner.
    pub(crate) has_looked: Notify,
}

/// The latest commands of other nodes.
#[derive(Default)]
pub(crate) struct Arrived(Mutex<VecDeque<String>>);

/// What is known since the members were last read.
struct Known {
    /// The nodes whose lease has not lapsed, or that answered.
    alive: BTreeSet<NodeId>,
    /// Nodes that did not answer.
    gone: BTreeSet<NodeId>,
}

/// The outcome of relaying a command.
pub(crate) enum Relayed {
    /// The owner's reply.
    Reply(Reply),
    /// The owner is dead or frozen: the turn may be taken over.
    NoOwner {
        /// Whether it may have carried the command out before, or may still do so.
        may_have_acted: bool,
    },
    /// The owner is alive, but did not reply.
    Unanswered,
}

impl Peers {
    pub(crate) fn new(cluster: Cluster) -> Self {
        let known = Known { alive: BTreeSet::from([cluster.node.clone()]), gone: BTreeSet::new() };
        Self {
            known: Mutex::new(known),
            cluster,
            orphans: Mutex::default(),
            arrived: Arrived::default(),
            undecided: Undecided::default(),
            started_at: OnceLock::new(),
            look_now: Notify::new(),
            has_looked: Notify::new(),
        }
    }

    /// Returns when this node first announced itself. `now`: if it has not yet.
    pub(crate) fn started_at(&self, now: Millis) -> Millis {
        *self.started_at.get_or_init(|| now)
    }

    /// The nodes that were alive, but are not among these.
    pub(crate) fn missing(&self, nodes: &[NodeId]) -> Vec<NodeId> {
        let known = self.known();
        let missing = known.alive.iter().filter(|node| **node != self.cluster.node && !nodes.contains(node));
        missing.cloned().collect()
    }

    /// Replaces what is known about the nodes. Returns whether one is gone.
    pub(crate) fn set_alive(&self, nodes: impl IntoIterator<Item = NodeId>) -> bool {
        let mut now: BTreeSet<_> = nodes.into_iter().collect();
        // A node that cannot renew its lease still drives its turns.
        now.insert(self.cluster.node.clone());
        let mut known = self.known();
        let gone: BTreeSet<_> = known.alive.difference(&now).cloned().collect();
        let is_gone = !gone.is_empty();
        *known = Known { alive: now, gone };
        is_gone
    }

    /// Returns all nodes that are there, this one included.
    pub(crate) fn alive(&self) -> Vec<NodeId> {
        self.known().alive.iter().cloned().collect()
    }

    /// Whether the node's lease has not lapsed.
    pub(crate) fn is_alive(&self, node: &NodeId) -> bool {
        self.known().alive.contains(node)
    }

    /// Whether the node is gone. A node that is not known may have begun a moment ago: it is asked.
    pub(crate) async fn is_gone(&self, node: &NodeId) -> bool {
        {
            let known = self.known();
            if known.alive.contains(node) || known.gone.contains(node) {
                return known.gone.contains(node);
            }
        }
        let answers = self.answers(node).await;
        let mut known = self.known();
        if answers {
            known.alive.insert(node.clone())
        } else {
            known.gone.insert(node.clone())
        };
        !answers
    }

    /// Whether this node is the one that takes over a conversation without an owner. All nodes that see the same members
    /// choose the same one; others than the chosen one would only lose the race to append.
    pub(crate) fn is_heir(&self, id: &ConversationId) -> bool {
        let known = self.known();
        known.alive.iter().max_by_key(|node| weight(id, node)) == Some(&self.cluster.node)
    }

    /// Asks the other nodes, one after another, to continue a turn without an owner that this one cannot. Returns whether one
    /// does.
    pub(crate) async fn hand_on(&self, id: &ConversationId) -> bool {
        let mut others: Vec<_> =
            self.known().alive.iter().filter(|node| !self.is_own(node)).cloned().collect();
        others.sort_by_key(|node| std::cmp::Reverse(weight(id, node)));
        for node in others {
            let request = Request::Continue { id: id.clone() };
            if matches!(self.ask(&node, &request, CONTINUED_WITHIN).await, Ok(Reply::Done(true))) {
                return true;
            }
        }
        false
    }

    fn is_own(&self, node: &NodeId) -> bool {
        *node == self.cluster.node
    }

    /// Replaces the turns that have no owner. Returns those that had none before.
    pub(crate) fn still_orphans(&self, orphans: HashSet<ConversationId>) -> HashSet<ConversationId> {
        let mut known = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        let still = orphans.intersection(&known).cloned().collect();
        *known = orphans;
        still
    }

    /// Whether to ask if a node is absent whose lease has not lapsed: if all are asked, or it was absent before.
    pub(crate) fn suspects(&self, node: &NodeId, all: bool) -> bool {
        *node != self.cluster.node && (all || self.known().gone.contains(node))
    }

    /// Whether the node certainly does not exist any more, although its lease may not have lapsed. A frozen one exists.
    pub(crate) async fn is_absent(&self, node: &NodeId) -> bool {
        let reply = self.ask(node, &Request::Ping, ALIVE_WITHIN).await;
        matches!(reply, Ok(Reply::Left) | Err(SendError::NoNode))
    }

    /// Whether the node answers.
    pub(crate) async fn answers(&self, node: &NodeId) -> bool {
        matches!(self.ask(node, &Request::Ping, ALIVE_WITHIN).await, Ok(Reply::Done(true)))
    }

    /// Sends a command to the owner of a conversation, and checks meanwhile that it is alive.
    pub(crate) async fn relay(
        &self,
        owner: &NodeId,
        id: &ConversationId,
        (turn, wait, Version(version)): (Option<Cursor>, Option<u64>, Version),
        command: Command,
    ) -> Relayed {
        let (id, turn) = (id.clone(), turn.map(Cursor::value));
        let request = Request::Command { id, turn, wait, version, command, request: Some(new_id::message()) };
        let reply = pin!(self.ask(owner, &request, DONE_WITHIN));
        let is_alive = pin!(self.answers(owner));
        let reply = match select(reply, is_alive).await {
            Either::Left((reply, _)) => reply,
            Either::Right((false, _)) => return Relayed::NoOwner { may_have_acted: true },
            Either::Right((true, reply)) => reply.await,
        };
        match reply {
            Ok(Reply::Left) | Err(SendError::NoNode) => Relayed::NoOwner { may_have_acted: false },
            Ok(reply) => Relayed::Reply(reply),
            Err(SendError::Unanswered) => Relayed::Unanswered,
        }
    }

    /// Sends a request and decodes the reply.
    pub(crate) async fn ask(
        &self,
        node: &NodeId,
        request: &Request,
        within: Duration,
    ) -> Result<Reply, SendError> {
        // Cannot fail: string keys and finite numbers only.
        let request = serde_json::to_vec(request).unwrap_or_default();
        let reply = self.cluster.commands.send(node, request.into(), within).await?;
        serde_json::from_slice(&reply).map_err(|error| {
            tracing::warn!(%node, %error, "a node sent a reply that cannot be read");
            SendError::Unanswered
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Arrived {
    /// Whether this command of another node has arrived before. Its first copy is carried out and answered; the reply to another
    /// one could come first, and would say that the command had no effect.
    pub(crate) fn is_repeated(&self, request: &Request) -> bool {
        let Request::Command { request: Some(request), .. } = request else { return false };
        let mut heard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if heard.contains(request) {
            return true;
        }
        if heard.len() >= MAX_ARRIVED {
            heard.pop_front();
        }
        heard.push_back(request.clone());
        false
    }
}

/// The node with the largest weight is the heir of a conversation.
fn weight(id: &ConversationId, node: &NodeId) -> (Vec<u8>, NodeId) {
    // The same in every build, unlike the standard library's hashes.
    let hash = Sha256::new().chain_update(id.as_str()).chain_update(&node.0).finalize();
    (hash.to_vec(), node.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(name: Option<&str>) -> Request {
        Request::Command {
            id: "c".into(),
            turn: None,
            wait: None,
            version: 0,
            command: Command::Stop,
            request: name.map(ToOwned::to_owned),
        }
    }

    #[test]
    fn a_command_that_arrives_twice_is_noticed() {
        let heard = Arrived::default();
        assert!(!heard.is_repeated(&request(Some("a"))));
        assert!(!heard.is_repeated(&request(Some("b"))));
        assert!(heard.is_repeated(&request(Some("a"))));
        // An older version does not name its requests, and other requests may be repeated.
        assert!(!heard.is_repeated(&request(None)) && !heard.is_repeated(&request(None)));
        assert!(!heard.is_repeated(&Request::Ping) && !heard.is_repeated(&Request::Ping));
        for number in 0..MAX_ARRIVED {
            assert!(!heard.is_repeated(&request(Some(&number.to_string()))));
        }
        assert!(!heard.is_repeated(&request(Some("a"))), "it is forgotten after a while");
    }
}
