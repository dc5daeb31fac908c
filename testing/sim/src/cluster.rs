//! Several nodes that share a journal, in one process: a modelled log with the faults of a real one.
//!
//! [`SharedLog`] gives each node its journal and its ports. A node can be [cut off](SharedLog::cut_off) as if it were frozen:
//! its calls hang, and what it sent arrives when it is [connected](SharedLog::connect) again. It can be cut off [in
//! part](SharedLog::part), one way, too: then its calls fail after a while. While the log [elects](SharedLog::elect), no node
//! can use it. A node can also be frozen [right after an append](SharedLog::freeze_after), before it learns that the append was
//! stored. [Removing](SharedLog::kill) a node is the end of its process. [`Noise`] loses, repeats and delays live events,
//! commands, and the answers to appends.

mod append;
mod commands;
pub mod contract;
mod fault;
mod journal;
mod list;
mod ports;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use everturn_orchestrator::{
    Clock, Cluster, Commit, Incoming, Journal, JournalError, LiveEvent, Member, MemoryJournal, NodeId,
    kernel::Millis,
};
use everturn_wire::ConversationId;
use futures_util::future::{Either, select};
use tokio::sync::{Notify, mpsc, oneshot};

use fault::GIVE_UP;
pub use fault::{Carriage, Cut, Election, Fate, Noise, Way};
use journal::NodeJournal;
use list::{ListFollower, NodeList};
use ports::NodePorts;

/// How long a lease lasts after its last renewal.
const LEASE: Duration = Duration::from_secs(15);

/// A journal that several nodes share, and what they tell each other.
#[derive(Clone)]
pub struct SharedLog(Arc<Shared>);

struct Shared {
    journal: MemoryJournal,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Notified when something can be reached again.
    healed: Notify,
}

struct State {
    /// Who wrote the last append of a conversation.
    owners: HashMap<ConversationId, NodeId>,
    followers: HashMap<ConversationId, Vec<Follower>>,
    list: Vec<ListFollower>,
    /// Who hears the notices of the others.
    listeners: Vec<(NodeId, mpsc::UnboundedSender<Bytes>)>,
    inboxes: BTreeMap<NodeId, mpsc::UnboundedSender<Incoming>>,
    members: BTreeMap<NodeId, (Member, Millis)>,
    /// Nodes that are frozen or dead.
    cut_off: BTreeSet<NodeId>,
    dead: BTreeSet<NodeId>,
    /// What nodes are cut off from otherwise.
    cuts: BTreeMap<NodeId, Cut>,
    election: Option<Election>,
    freezes: BTreeMap<NodeId, Freeze>,
    noise: Noise,
    random: fastrand::Rng,
    /// How many appends of each node were stored, stale and unknown.
    appends: Appends,
    witness: Option<Witness>,
}

/// Is shown each append: its node, its conversation, the commit, and what became of it.
type Witness = Box<dyn Fn(&NodeId, &ConversationId, &Commit, Fate) + Send>;

/// A node that is cut off after its next append of a kind.
struct Freeze {
    after: Box<dyn Fn(&Commit) -> bool + Send>,
    frozen: oneshot::Sender<()>,
}

/// What became of appends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Appends {
    /// They were stored.
    pub stored: u64,
    /// Another node was faster.
    pub stale: u64,
    /// They were stored, but their answer may be lost.
    pub unknown: u64,
    /// They were stored after their node was told that their outcome is unknown.
    pub late: u64,
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
            listeners: Vec::new(),
            inboxes: BTreeMap::new(),
            members: BTreeMap::new(),
            cut_off: BTreeSet::new(),
            dead: BTreeSet::new(),
            cuts: BTreeMap::new(),
            election: None,
            freezes: BTreeMap::new(),
            noise,
            random: fastrand::Rng::with_seed(seed),
            appends: Appends::default(),
            witness: None,
        };
        let (journal, healed) = (MemoryJournal::new(), Notify::new());
        Self(Arc::new(Shared { journal, clock, state: Mutex::new(state), healed }))
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

    /// Cuts a node off, as if it were frozen: its calls hang, and nothing reaches it.
    pub fn cut_off(&self, name: &str) {
        self.0.lock().cut_off.insert(name.into());
    }

    /// Cuts a node off as soon as its next append of this kind is stored: it learns that it was stored when it is connected
    /// again. The receiver is told when that happens; dropping it cancels this.
    pub fn freeze_after(
        &self,
        name: &str,
        after: impl Fn(&Commit) -> bool + Send + 'static,
    ) -> oneshot::Receiver<()> {
        let (frozen, receiver) = oneshot::channel();
        self.0.lock().freezes.insert(name.into(), Freeze { after: Box::new(after), frozen });
        receiver
    }

    /// Connects a node again. Calls that hang continue.
    pub fn connect(&self, name: &str) {
        let node = NodeId::from(name);
        self.0.lock().cut_off.remove(&node);
        self.0.tell_missed(&node);
        self.0.healed.notify_waiters();
    }

    /// Cuts a node off in part, as a broken network does. Replaces the cut before.
    pub fn part(&self, name: &str, cut: Cut) {
        let mut state = self.0.lock();
        state.cuts.insert(name.into(), cut);
    }

    /// Ends the cut of a node.
    pub fn heal(&self, name: &str) {
        let node = NodeId::from(name);
        self.0.lock().cuts.remove(&node);
        self.0.tell_missed(&node);
        self.0.healed.notify_waiters();
    }

    /// Begins an election.
    pub fn elect(&self, election: Election) {
        self.0.lock().election = Some(election);
    }

    /// Ends an election.
    pub fn elected(&self) {
        self.0.lock().election = None;
        self.0.healed.notify_waiters();
    }

    /// Forgets a node whose process has ended. Its lease lapses by itself.
    pub fn kill(&self, name: &str) {
        let node = NodeId::from(name);
        let mut state = self.0.lock();
        // Its tasks may still run: nothing they do arrives.
        state.cut_off.insert(node.clone());
        state.dead.insert(node.clone());
        state.cuts.remove(&node);
        state.inboxes.remove(&node);
        state.listeners.retain(|(listener, _)| *listener != node);
        state.followers.values_mut().for_each(|followers| followers.retain(|follower| follower.node != node));
        state.list.retain(|follower| !follower.is_of(&node));
        drop(state);
        self.0.healed.notify_waiters();
    }

    /// Shows each append: its node, its conversation, the commit, and what became of it. Replaces the witness before.
    pub fn witness(&self, witness: impl Fn(&NodeId, &ConversationId, &Commit, Fate) + Send + 'static) {
        self.0.lock().witness = Some(Box::new(witness));
    }

    /// Replaces the noise.
    pub fn disturb(&self, noise: Noise) {
        self.0.lock().noise = noise;
    }

    /// Stops all noise.
    pub fn calm(&self) {
        self.disturb(Noise::default());
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

    /// Waits until a condition holds.
    async fn until(&self, holds: impl Fn(&State) -> bool) {
        loop {
            let mut healed = std::pin::pin!(self.healed.notified());
            // Register before checking, so that no notification is missed.
            healed.as_mut().enable();
            if holds(&self.lock()) {
                return;
            }
            healed.await;
        }
    }

    /// Waits until a condition holds, as long as a client would. Returns whether it does.
    async fn soon(&self, holds: impl Fn(&State) -> bool + Send) -> bool {
        let until = std::pin::pin!(self.until(holds));
        matches!(select(until, self.clock.sleep(GIVE_UP)).await, Either::Left(_))
    }

    /// Waits until the node is not frozen.
    async fn reach(&self, node: &NodeId) {
        self.until(|state| !state.cut_off.contains(node)).await;
    }

    /// Waits until a node can use the log. Returns false when its client gives up first.
    async fn log_opens(&self, node: &NodeId) -> bool {
        self.soon(|state| state.log_is_open(node)).await
    }

    /// Waits until the log answers a node that reads.
    async fn answers(&self, node: &NodeId) -> Result<(), JournalError> {
        self.reach(node).await;
        let fails = self.lock().election.is_some_and(|election| election.fails);
        if !fails && self.log_opens(node).await {
            return Ok(());
        }
        Err(JournalError::Storage("the log does not answer".to_owned()))
    }
}

impl State {
    /// Cuts the node off if that was to happen after such an append.
    fn freeze(&mut self, node: &NodeId, commit: &Commit) {
        let is_due = |freeze: &Freeze| !freeze.frozen.is_closed() && (freeze.after)(commit);
        if self.freezes.get(node).is_some_and(is_due)
            && let Some(freeze) = self.freezes.remove(node)
        {
            self.cut_off.insert(node.clone());
            let _ = freeze.frozen.send(());
        }
    }

    /// Sends a notice to all other nodes, as far as the noise lets it.
    fn tell(&mut self, from: &NodeId, notice: &Bytes) {
        let Self { listeners, cut_off, noise, random, .. } = self;
        listeners.retain(|(node, sender)| {
            let is_cut_off = cut_off.contains(node) || cut_off.contains(from);
            if node == from || is_cut_off || random.f64() < noise.lost {
                return !sender.is_closed();
            }
            let copies = if random.f64() < noise.doubled { 2 } else { 1 };
            (0..copies).all(|_| sender.send(notice.clone()).is_ok())
        });
    }

    /// Sends an event to the followers of a conversation at other nodes, as far as the noise lets it.
    fn publish(&mut self, id: &ConversationId, from: &NodeId, event: &LiveEvent) {
        let Self { followers, cut_off, cuts, noise, random, .. } = self;
        let cut = |node: &NodeId| cuts.get(node).copied().unwrap_or_default();
        // All else is announced by the log.
        let is_streamed = matches!(event, LiveEvent::Streamed(_));
        let is_mute = is_streamed && (cut_off.contains(from) || cut(from).bus.blocks_out());
        let Some(followers) = followers.get_mut(id).filter(|_| !is_mute) else { return };
        let mut happens = |chance: f64| random.f64() < chance;
        followers.retain_mut(|follower| {
            let is_cut_off = cut_off.contains(&follower.node) || cut(&follower.node).bus.blocks_in();
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
