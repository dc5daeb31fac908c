//! A node: one process of a world.

use std::{
    future,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_orchestrator::{Exponential, NodeId, Orchestrator};
use tokio::sync::Notify;

use super::{
    super::{
        script::{HOUR_MS, Script},
        world::{MAX_RETRIES, Replayed},
    },
    ledger::Ledger,
    model::Line,
    plan::Plan,
    tool::Counted,
};
use crate::cluster::SharedLog;

/// The longest hint of a call that succeeds later, in milliseconds.
const LONGEST_MS: u64 = HOUR_MS / 60;

/// A node.
#[derive(Clone)]
pub(super) struct Node {
    pub(super) name: String,
    pub(super) orchestrator: Orchestrator,
    pub(super) life: Arc<Life>,
}

/// The life of a process.
#[derive(Default)]
pub(super) struct Life {
    over: AtomicBool,
    ended: Notify,
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
            .schedule(Replayed(Exponential {
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

impl Life {
    /// Ends the process.
    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
        self.ended.notify_waiters();
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Never returns if the process has ended: nothing that it was doing goes on.
    pub(super) async fn goes_on(&self) {
        if self.is_over() {
            future::pending::<()>().await;
        }
    }

    /// Waits until the process ends.
    pub(super) async fn ended(&self) {
        let mut ended = std::pin::pin!(self.ended.notified());
        // Register before checking, so that no notification is missed.
        ended.as_mut().enable();
        if !self.is_over() {
            ended.await;
        }
    }

    /// Waits for something of the process; `None` if it ends first.
    pub(super) async fn while_it_lasts<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            biased;
            () = self.ended() => None,
            done = work => Some(done),
        }
    }
}
