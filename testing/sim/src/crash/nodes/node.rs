//! A node: one process of a world.

use std::{sync::Arc, time::Duration};

use everturn_orchestrator::{Exponential, NodeId, Orchestrator};

use super::{ledger::Ledger, life::Life, model::Line, plan::Plan, tool::Counted};
use crate::{
    cluster::SharedLog,
    crash::{
        script::{HOUR_MS, Script},
        world::{MAX_RETRIES, Replayed},
    },
};

/// The longest hint of a call that succeeds later, in milliseconds.
const LONGEST_MS: u64 = HOUR_MS / 60;

/// A node.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) orchestrator: Orchestrator,
    pub(super) life: Arc<Life>,
}

impl Node {
    pub(super) fn new(name: &str, seed: u64, plan: &Plan, log: &SharedLog, ledger: &Ledger) -> Self {
        let (node, life) = (NodeId::from(name), Arc::new(Life::default()));
        let script = Script { seed, longest_ms: LONGEST_MS };
        let line = Line { script, ledger: ledger.clone(), node: node.clone(), life: life.clone() };
        let tool = |name, is_idempotent| Counted {
            name,
            is_idempotent,
            asks: plan.asks && !is_idempotent,
            ledger: ledger.clone(),
            node: node.clone(),
            life: life.clone(),
        };
        let (journal, cluster) = log.node(name);
        let orchestrator = Orchestrator::builder()
            .model("world", "model", Arc::new(line))
            .tool(tool("charge", false))
            .tool(tool("lookup", true))
            .journal(journal)
            .clock(Arc::new(ledger.clock.clone()))
            .cluster(cluster)
            .schedule(Replayed::policy(Exponential {
                base: Duration::from_millis(plan.base_ms),
                max_retries: MAX_RETRIES,
                jitter: 0.2,
                seed: plan.base_ms,
                ..Exponential::default()
            }))
            .settings(plan.settings.clone())
            .build();
        Self { name: name.to_owned(), orchestrator, life }
    }

    pub(super) fn id(&self) -> NodeId {
        NodeId::from(self.name.as_str())
    }
}
