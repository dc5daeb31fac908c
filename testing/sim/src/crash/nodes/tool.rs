//! The tools of a world of several nodes. Their starts are counted at all nodes together.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, NodeId, Policy, Tool,
    kernel::{ToolAnswer, ToolSpec},
};
use everturn_wire::{OutputStream, Value};

use super::{ledger::Ledger, life::Life};

/// A tool at one node.
pub(super) struct Counted {
    pub(super) name: &'static str,
    pub(super) is_idempotent: bool,
    /// Whether its calls need approval.
    pub(super) asks: bool,
    pub(super) ledger: Ledger,
    pub(super) node: NodeId,
    pub(super) life: Arc<Life>,
}

impl Counted {
    /// Records a start, and checks that it is allowed.
    fn start(&self, call: &Invocation) {
        let key = (call.turn_id.to_string(), call.step, call.call_id.clone());
        let times = self.ledger.starts(key.clone());
        let owns = self.ledger.owns(&self.node, &call.conversation_id);
        let mut pages = self.ledger.book.pages();
        let turn = pages.name(call.turn_id.as_str());
        let (node, name) = (&self.node, self.name);
        pages.note(|| format!("{node} {turn}: {name} starts for {} of step {}", call.call_id, call.step));
        if times > 1 && !self.is_idempotent {
            pages.wrong(format!("{name} was started {times} times for call {}, now at {node}", call.call_id));
        }
        // Who takes a turn over does not wait for calls that may run again.
        if !owns && !self.is_idempotent {
            pages
                .wrong(format!("{name} was started for call {} at {node}, which was replaced", call.call_id));
        }
        if self.asks && !pages.allowed.contains(&key) {
            pages.wrong(format!("{name} was started for call {} without approval", call.call_id));
        }
        pages.tally.count(if times > 1 { "a tool runs again" } else { "a tool runs" });
    }
}

#[async_trait]
impl Tool for Counted {
    fn spec(&self) -> ToolSpec {
        ToolSpec { name: self.name.to_owned(), description: String::new(), parameters: Value::Null }
    }

    fn is_idempotent(&self) -> bool {
        self.is_idempotent
    }

    fn policy(&self) -> Policy {
        if self.asks { Policy::Ask } else { Policy::Allow }
    }

    async fn run(&self, call: Invocation) -> ToolAnswer {
        self.life.goes_on().await;
        self.start(&call);
        call.output.write(OutputStream::Stdout, format!("{} works", self.name)).await;
        tokio::time::sleep(Duration::from_millis(call.input["ms"].as_u64().unwrap_or(0))).await;
        self.life.goes_on().await;
        ToolAnswer::ok(format!("{} of {}", self.name, call.call_id))
    }
}
