//! Pacing and other nodes: what this node tells them, what it makes of what they tell, and its part of shared limits.
//!
//! Notices are hints: without them, each node finds out by a refusal of its own, and keeps to the part that it had.

use std::{collections::HashMap, sync::Arc};

use everturn_kernel::Millis;
use everturn_pacing::{Known, Use};
use everturn_wire::{CallerName, Failure, TurnId};

use super::{Inner, Pacing};
use crate::{
    journal::NodeId,
    notice::{Closed, Notice, brief},
};

/// What a node has to do.
#[derive(Clone, Debug, Default)]
pub(super) struct Demands {
    /// The calls that each of the other nodes has to make, by target.
    others: HashMap<String, HashMap<NodeId, u64>>,
    /// What this node told last.
    told: HashMap<String, u64>,
    /// The same of callers.
    pub(super) told_of_callers: HashMap<CallerName, Use>,
    /// All nodes that are there, this one included.
    pub(super) nodes: Vec<String>,
}

impl Pacing {
    /// Applies a notice of another node about a target that this one has.
    pub(crate) fn hear(self: &Arc<Self>, notice: Notice, now: Millis) {
        let target = notice.target().to_owned();
        self.report(&target, |inner| match notice {
            Notice::Closed(Closed { closed_ms_ago, left_ms, first, hint_left_ms, failure, .. }) => {
                inner.pacer.refused_elsewhere(&target, &first, closed_ms_ago, hint_left_ms, left_ms, now);
                inner.about(&target).refusal = Some(failure);
            }
            Notice::Probing { .. } => inner.pacer.probed_elsewhere(&target, now),
            Notice::Opened { asked_ms_ago, .. } => inner.pacer.accepted_elsewhere(&target, asked_ms_ago, now),
            Notice::Demand { node, calls, lately, .. } => {
                inner.pacer.lately_elsewhere(&target, lately, now);
                inner.demands.others.entry(target.clone()).or_default().insert(node, calls);
                inner.share(&target, now);
            }
            Notice::Caller(_) | Notice::Failed { .. } | Notice::Answered { .. } => {}
        });
    }

    /// Tells other nodes how many calls this one has to make, what it made and learnt, and which limited targets it is asking.
    pub(crate) fn tell_again(self: &Arc<Self>, node: &NodeId, now: Millis) {
        let mut inner = self.lock();
        let mut news = inner.news_of_callers(node, now);
        let targets: Vec<String> = inner.targets.keys().cloned().collect();
        for target in targets {
            if inner.pacer.is_probed(&target, now) {
                news.push(Notice::Probing { target: target.clone(), turn: TurnId::from("") });
            }
            let (calls, lately) = (inner.pacer.demand(&target), inner.pacer.lately(&target, now));
            if inner.demands.told.insert(target.clone(), calls) != Some(calls) || lately.made > 0 {
                inner.share(&target, now);
                news.push(Notice::Demand { target, node: node.clone(), calls, lately });
            }
        }
        let looks = inner.has_limits && inner.line.has_any();
        drop(inner);
        if looks {
            // Parts of callers' limits may have moved here.
            self.look();
        }
        news.iter().for_each(|notice| self.notices.tell(notice));
    }

    /// Gives the parts of nodes that are gone to those that are left.
    pub(crate) fn keep_parts_of(&self, alive: &[NodeId], now: Millis) {
        let mut inner = self.lock();
        inner.demands.nodes = alive.iter().map(|node| node.0.clone()).collect();
        for nodes in inner.demands.others.values_mut() {
            nodes.retain(|node, _| alive.contains(node));
        }
        // A node that has joined knows nothing.
        inner.demands.told.clear();
        inner.demands.told_of_callers.clear();
        let targets: Vec<String> = inner.demands.others.keys().cloned().collect();
        targets.iter().for_each(|target| inner.share(target, now));
    }
}

impl Inner {
    /// Sets this node's part of a target's limits: by what it has to do.
    fn share(&mut self, target: &str, now: Millis) {
        let Some(others) = self.demands.others.get(target) else { return };
        let mine = self.pacer.demand(target);
        let all = others.values().fold(mine, |all, calls| all.saturating_add(*calls));
        self.pacer.share(target, mine, all, now);
    }

    /// Returns what to tell of a target that was refused here.
    pub(super) fn news_of_refusal(&self, target: &str, failure: &Failure, now: Millis) -> Option<Notice> {
        let Known { closed_at, probe_at, hint_ends, refused, is_offline, .. } =
            self.pacer.known(target, now)?;
        let (closed_at, probe_at) = closed_at.zip(probe_at).filter(|_| !is_offline)?;
        Some(Notice::Closed(Closed {
            target: target.to_owned(),
            closed_ms_ago: now.since(closed_at),
            left_ms: probe_at.since(now),
            first: refused.unwrap_or_else(|| TurnId::from("")),
            hint_left_ms: hint_ends.map(|ends| ends.since(now)),
            failure: brief(failure),
        }))
    }
}
