//! Several nodes that share a journal, in one process: a modelled log with the faults of a real one.
//!
//! [`SharedLog`] gives each node its journal and its ports. A node can be [cut off](SharedLog::cut_off): its calls hang, and
//! what it sent arrives when it is [connected](SharedLog::connect) again. [Removing](SharedLog::kill) it is the end of its
//! process. [`Noise`] loses, repeats and delays live events.

pub mod contract;
mod journal;
mod list;
mod ports;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use everturn_orchestrator::{
    Clock, Cluster, Commit, Incoming, Journal, LiveEvent, Member, MemoryJournal, NodeId, kernel::Millis,
};
use everturn_wire::ConversationId;
use tokio::sync::{Notify, mpsc};

use journal::NodeJournal;
use list::{ListFollower, NodeList};
use ports::NodePorts;

/// How long a lease lasts after its last renewal.
const LEASE: Duration = Duration::from_secs(15);

/// A journal that several nodes share, and what they tell each other.
#[derive(Clone)]
pub struct SharedLog(Arc<Shared>);

/// What happens to live events on their way, each with this probability.
#[derive(Clone, Copy, Debug, Default)]
pub struct Noise {
    /// It is lost.
    pub lost: f64,
    /// It arrives twice.
    pub doubled: f64,
    /// It arrives after the next one.
    pub late: f64,
    /// An append is stored, but its answer is lost.
    pub unknown: f64,
}

struct Shared {
    journal: MemoryJournal,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Notified when a node is connected again.
    connected: Notify,
}

struct State {
    /// Who wrote the last append of a conversation.
    owners: HashMap<ConversationId, NodeId>,
    followers: HashMap<ConversationId, Vec<Follower>>,
    list: Vec<ListFollower>,
    inboxes: BTreeMap<NodeId, mpsc::UnboundedSender<Incoming>>,
    members: BTreeMap<NodeId, (Member, Millis)>,
    cut_off: BTreeSet<NodeId>,
    noise: Noise,
    random: fastrand::Rng,
    /// How many appends of each node were stored, stale and unknown.
    appends: Appends,
    witness: Option<Witness>,
}

/// Is shown each append that was stored: its node, its conversation, the commit, and whether its answer is lost.
type Witness = Box<dyn Fn(&NodeId, &ConversationId, &Commit, bool) + Send>;

/// What became of appends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appends {
    /// They were stored.
    pub stored: u64,
    /// Another node was faster.
    pub stale: u64,
    /// They were stored, but their answer was lost.
    pub unknown: u64,
}

struct Follower {
    node: NodeId,
    sender: mpsc::UnboundedSender<LiveEvent>,
    late: Option<LiveEvent>,
}

impl SharedLog {
    /// Creates an empty log without noise.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self::noisy(clock, Noise::default(), 0)
    }

    /// Creates an empty log with noise from this seed.
    pub fn noisy(clock: Arc<dyn Clock>, noise: Noise, seed: u64) -> Self {
        let state = State {
            owners: HashMap::new(),
            followers: HashMap::new(),
            list: Vec::new(),
            inboxes: BTreeMap::new(),
            members: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            noise,
            random: fastrand::Rng::with_seed(seed),
            appends: Appends::default(),
            witness: None,
        };
        let (journal, connected) = (MemoryJournal::new(), Notify::new());
        Self(Arc::new(Shared { journal, clock, state: Mutex::new(state), connected }))
    }

    /// Returns the journal and the ports of a node.
    pub fn node(&self, name: &str) -> (Arc<dyn Journal>, Cluster) {
        let node = NodeId::from(name);
        let ports = Arc::new(NodePorts { node: node.clone(), shared: self.0.clone() });
        let journal = NodeJournal { node: node.clone(), shared: self.0.clone() };
        let list = NodeList { node: node.clone(), shared: self.0.clone() };
        let cluster = Cluster {
            node,
            name: name.to_owned(),
            live: ports.clone(),
            list: Arc::new(list),
            commands: ports.clone(),
            members: ports,
        };
        (Arc::new(journal), cluster)
    }

    /// Returns the journal without an owner, to look at what is in it.
    pub fn journal(&self) -> &MemoryJournal {
        &self.0.journal
    }

    /// Cuts a node off, as if it were frozen or behind a broken network: its calls hang, and nothing reaches it.
    pub fn cut_off(&self, name: &str) {
        self.0.lock().cut_off.insert(name.into());
    }

    /// Connects a node again. Calls that hang continue.
    pub fn connect(&self, name: &str) {
        let node = NodeId::from(name);
        self.0.lock().cut_off.remove(&node);
        self.0.tell_missed(&node);
        self.0.connected.notify_waiters();
    }

    /// Forgets a node whose process has ended. Its lease lapses by itself.
    pub fn kill(&self, name: &str) {
        let node = NodeId::from(name);
        let mut state = self.0.lock();
        // Its tasks may still run: nothing they do arrives.
        state.cut_off.insert(node.clone());
        state.inboxes.remove(&node);
        state.followers.values_mut().for_each(|followers| followers.retain(|follower| follower.node != node));
        state.list.retain(|follower| !follower.is_of(&node));
    }

    /// Shows each append that is stored: its node, its conversation, the commit, and whether its answer is lost. Replaces
    /// the witness before.
    pub fn witness(&self, witness: impl Fn(&NodeId, &ConversationId, &Commit, bool) + Send + 'static) {
        self.0.lock().witness = Some(Box::new(witness));
    }

    /// Stops all noise.
    pub fn calm(&self) {
        self.0.lock().noise = Noise::default();
    }

    /// Returns what became of all appends.
    pub fn appends(&self) -> Appends {
        self.0.lock().appends
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until the node is connected.
    async fn reach(&self, node: &NodeId) {
        loop {
            let mut connected = std::pin::pin!(self.connected.notified());
            // Register before checking, so that no notification is missed.
            connected.as_mut().enable();
            if !self.lock().cut_off.contains(node) {
                return;
            }
            connected.await;
        }
    }
}

impl State {
    /// Sends an event to the followers of a conversation at other nodes, as far as the noise lets it.
    fn publish(&mut self, id: &ConversationId, from: &NodeId, event: &LiveEvent) {
        let Self { followers, cut_off, noise, random, .. } = self;
        let Some(followers) = followers.get_mut(id) else { return };
        let mut happens = |chance: f64| random.f64() < chance;
        followers.retain_mut(|follower| {
            let is_cut_off = cut_off.contains(&follower.node) || cut_off.contains(from);
            if follower.node == *from || is_cut_off || happens(noise.lost) {
                return !follower.sender.is_closed();
            }
            if happens(noise.late) && follower.late.is_none() {
                follower.late = Some(event.clone());
                return true;
            }
            let copies = if happens(noise.doubled) { 2 } else { 1 };
            let late = follower.late.take();
            std::iter::repeat_n(event.clone(), copies)
                .chain(late)
                .all(|event| follower.sender.send(event).is_ok())
        });
    }
}
