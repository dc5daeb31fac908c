//! Membership: announces this node, notices when others are gone, and takes over their turns.

use std::{
    sync::{Arc, Weak},
    time::Duration,
};

use bytes::Bytes;
use everturn_kernel::Millis;
use everturn_wire::{ClusterNode, ClusterState};
use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, future::join_all};

use super::Orchestrator;
use crate::{
    Error, Incoming, Member, Unsealed,
    cluster::{Peers, Reply, Request},
    journal::NodeId,
    notice::Notice,
    registry::Registry,
    relay::Calls,
    session::Ports,
};

/// Interval at which a node renews its lease and looks at the others. Leases must last several times as long.
const BEAT: Duration = Duration::from_secs(3);

/// Interval at which a node tells the others what it has to do.
const TELL: Duration = Duration::from_secs(1);

/// Every so many beats, a node looks for turns without an owner although no node has left.
const LOOK_EVERY: u32 = 20;

/// How long a leaving node waits for the others to notice.
const NOTICED_WITHIN: Duration = Duration::from_millis(500);

/// Maximum number of names of a kind that a node announces, and their maximum length in characters.
const MAX_NAMES: usize = 100;
const MAX_NAME: usize = 128;

/// The parts of an orchestrator, as long as somebody else keeps them.
struct Parts(Weak<Registry>, Weak<Ports>, Weak<Calls>);

impl Parts {
    fn get(&self) -> Option<Orchestrator> {
        Some(Orchestrator { registry: self.0.upgrade()?, ports: self.1.upgrade()?, calls: self.2.upgrade()? })
    }
}

impl Orchestrator {
    /// Joins the other nodes: announces this one, serves their requests and takes over turns without an owner, now and
    /// whenever a node is gone. Returns the number of turns taken over now.
    pub(super) async fn join(&self, peers: &Arc<Peers>) -> Result<usize, Error> {
        let requests = peers.cluster.commands.receive().await?;
        tokio::spawn(serve(self.parts(), requests));
        self.follow_list(peers).await?;
        let live = &peers.cluster.live;
        tokio::spawn(hear(self.parts(), live.notices().await?));
        self.ports.pacing.notices.set(live.clone());
        self.ports.health.notices.set(live.clone());
        self.beat(peers, true).await?;
        let count = self.take_over(peers).await?;
        tokio::spawn(keep(self.parts(), peers.clone()));
        tokio::spawn(tell(self.parts(), peers.cluster.node.clone()));
        Ok(count)
    }

    /// Returns this node and all nodes that share the journal; none if it is not shared.
    ///
    /// # Errors
    /// When the membership cannot be reached.
    pub async fn cluster(&self) -> Result<ClusterState, Error> {
        let Some(peers) = &self.ports.peers else { return Ok(ClusterState::default()) };
        let members = peers.cluster.members.members().await?;
        let nodes = members.into_iter().map(|member| ClusterNode {
            id: member.node.0,
            name: member.name,
            version: member.version,
            started_at: member.started_at,
            turns: member.turns,
            models: member.models,
            tool_sources: member.tool_sources,
        });
        Ok(ClusterState { node: Some(peers.cluster.node.0.clone()), nodes: nodes.collect() })
    }

    fn parts(&self) -> Parts {
        Parts(Arc::downgrade(&self.registry), Arc::downgrade(&self.ports), Arc::downgrade(&self.calls))
    }

    /// Renews this node's lease and looks who is there. Returns whether a node is gone.
    /// `asks`: also whether nodes whose lease has not lapsed are absent.
    async fn beat(&self, peers: &Peers, asks: bool) -> Result<bool, Error> {
        let cluster = &peers.cluster;
        let member = Member {
            node: cluster.node.clone(),
            name: cluster.name.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started_at: peers.started_at(self.ports.clock.now()).0,
            turns: self.ports.timers.len() as u64 + self.ports.shutdown.writers() as u64,
            models: announced(self.ports.models.now().ids()),
            tool_sources: announced(self.ports.tools.sources().map(str::to_owned)),
        };
        cluster.members.renew(&member).await?;
        // Another node may have changed them.
        if let Err(error) = self.ports.retry.read().await {
            tracing::warn!(%error, "the retry settings cannot be read");
        }
        let mut alive: Vec<_> =
            cluster.members.members().await?.into_iter().map(|member| member.node).collect();
        let suspects: Vec<_> = alive.iter().filter(|node| peers.suspects(node, asks)).cloned().collect();
        let absent = join_all(suspects.iter().map(|node| peers.is_absent(node))).await;
        let absent: Vec<_> = suspects.iter().zip(absent).filter(|(_, absent)| *absent).collect();
        alive.retain(|node| !absent.iter().any(|(absent, _)| *absent == node));
        for node in peers.missing(&alive) {
            // Its lease has lapsed. Perhaps only the membership cannot be reached from there.
            if peers.answers(&node).await {
                alive.push(node);
            }
        }
        let is_gone = peers.set_alive(alive);
        self.ports.pacing.keep_parts_of(&peers.alive(), self.ports.clock.now());
        Ok(is_gone)
    }

    /// Takes over turns whose owner is gone, if this node is their heir. Waiting ones are woken when they are due.
    async fn take_over(&self, peers: &Peers) -> Result<usize, Error> {
        let orphans = self.orphans(peers).await?;
        Ok(self.inherit(peers, orphans).0)
    }

    /// Takes over those of these turns of which this node is the heir. Returns their number, and the others.
    fn inherit(&self, peers: &Peers, orphans: Vec<Unsealed>) -> (usize, Vec<Unsealed>) {
        let (own, others): (Vec<_>, Vec<_>) = orphans.into_iter().partition(|turn| peers.is_heir(&turn.id));
        let count = own.len();
        if count > 0 {
            tracing::info!(turns = count, "taking over turns without a server");
        }
        self.wake(own);
        (count, others)
    }

    /// Takes over turns that are due and have had no owner for a while: their heir may lack their model.
    /// Also wakes turns of this node that nobody here knows: their append was given up, and stored later.
    async fn take_over_left(&self, peers: &Peers) -> Result<(), Error> {
        let unsealed = self.ports.journal.unsealed(Millis(u64::MAX)).await?;
        let (own, others): (Vec<_>, Vec<_>) =
            unsealed.into_iter().partition(|turn| turn.owner.as_ref() == Some(&peers.cluster.node));
        self.wake(own.into_iter().filter(|turn| self.registry.held(&turn.id).is_none()));
        let orphans = without_owner(peers, others);
        let now = self.ports.clock.now();
        let mut due = self.inherit(peers, orphans).1;
        due.retain(|turn| !turn.wait.lasts(now));
        let left = peers.still_orphans(due.iter().map(|turn| turn.id.clone()).collect());
        self.wake(due.into_iter().filter(|turn| left.contains(&turn.id)));
        Ok(())
    }

    /// Returns unsealed turns whose owner is gone.
    async fn orphans(&self, peers: &Peers) -> Result<Vec<Unsealed>, Error> {
        Ok(without_owner(peers, self.ports.journal.unsealed(Millis(u64::MAX)).await?))
    }

    /// Leaves the other nodes, which take over at once.
    pub(super) async fn leave(&self) {
        let Some(peers) = &self.ports.peers else { return };
        let cluster = &peers.cluster;
        if let Err(error) = cluster.members.leave().await {
            tracing::warn!(%error, "the other servers will take over when this one's lease lapses");
            return;
        }
        // Read now: some may have joined a moment ago.
        let others = cluster.members.members().await.unwrap_or_default();
        let told = others.iter().map(|member| peers.ask(&member.node, &Request::TakeOver, NOTICED_WITHIN));
        join_all(told).await;
    }
}

/// Returns those of these turns whose owner is gone.
fn without_owner(peers: &Peers, mut unsealed: Vec<Unsealed>) -> Vec<Unsealed> {
    unsealed.retain(|turn| !turn.owner.as_ref().is_some_and(|owner| peers.is_alive(owner)));
    unsealed
}

/// Returns the names that a node announces.
fn announced(names: impl IntoIterator<Item = String>) -> Vec<String> {
    let short = |name: String| name.chars().take(MAX_NAME).collect();
    names.into_iter().take(MAX_NAMES).map(short).collect()
}

/// Carries out the requests of other nodes, each in its own task.
async fn serve(parts: Parts, mut requests: BoxStream<'static, Incoming>) {
    while let Some(Incoming { request, reply }) = requests.next().await {
        let Some(this) = parts.get() else { return };
        tokio::spawn(async move {
            let answer = match serde_json::from_slice::<Request>(&request) {
                Ok(request) if this.is_repeated(&request) => return,
                Ok(request) => this.answer_node(request).await,
                Err(error) => Reply::Failed {
                    fault: crate::Fault::Server,
                    message: format!("this server does not know the command, it may be older: {error}"),
                },
            };
            // Cannot fail: string keys and finite numbers only.
            reply(serde_json::to_vec(&answer).unwrap_or_default().into());
        });
    }
}

/// Applies what other nodes tell about targets that this one has.
async fn hear(parts: Parts, mut notices: BoxStream<'static, Bytes>) {
    while let Some(notice) = notices.next().await {
        let Some(Orchestrator { ports, .. }) = parts.get() else { return };
        let Some(notice) = Notice::read(&notice) else { continue };
        let now = ports.clock.now();
        let notice = match notice {
            Notice::Caller(used) => {
                ports.pacing.hear_of_caller(&used);
                continue;
            }
            notice => notice,
        };
        let Some(target) = ports.models.now().target(notice.target()) else { continue };
        ports.health.hear(&notice, &target, now);
        ports.pacing.hear(notice, now);
    }
}

/// Tells the other nodes what this one has to do, until the orchestrator is shut down or dropped.
async fn tell(parts: Parts, node: NodeId) {
    while let Some(Orchestrator { ports, .. }) = parts.get() {
        let clock = ports.clock.clone();
        ports.pacing.tell_again(&node, clock.now());
        let shutdown = ports.shutdown.clone();
        drop(ports);
        tokio::select! {
            biased;
            () = shutdown.down() => return,
            () = clock.sleep(TELL) => {}
        }
    }
}

/// Keeps this node's lease and looks for turns without an owner until the orchestrator is shut down or dropped.
async fn keep(parts: Parts, peers: Arc<Peers>) {
    for beat in 1_u32.. {
        let Some(this) = parts.get() else { return };
        let (clock, shutdown) = (this.ports.clock.clone(), this.ports.shutdown.clone());
        // Not kept alive by this task.
        drop(this);
        let is_told = tokio::select! {
            biased;
            () = shutdown.down() => return,
            () = peers.look_now.notified() => true,
            () = clock.sleep(BEAT) => false,
        };
        let Some(this) = parts.get() else { return };
        let is_gone = this.beat(&peers, is_told).await.unwrap_or_else(|error| {
            tracing::warn!(%error, "the other servers cannot be seen");
            false
        });
        let taken = match (is_gone || is_told, beat.is_multiple_of(LOOK_EVERY)) {
            (true, _) => this.take_over(&peers).await.map(drop),
            (false, true) => this.take_over_left(&peers).await,
            (false, false) => Ok(()),
        };
        if let Err(error) = taken {
            tracing::warn!(%error, "turns without a server cannot be found now");
        }
        peers.has_looked.notify_waiters();
    }
}
