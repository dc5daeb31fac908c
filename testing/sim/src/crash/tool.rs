//! The tools of a world. Their effects are counted, and outlive the process.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, Policy, Tool,
    kernel::{ToolAnswer, ToolSpec},
};
use everturn_wire::{OutputStream, Value};

use super::{
    fuse::{Fuse, Point},
    model::Model,
};

/// The number of starts of each call, by turn, step and id.
pub(super) type Started = Arc<Mutex<HashMap<(String, u32, String), usize>>>;

/// A tool.
pub(super) struct Counted {
    pub(super) name: &'static str,
    pub(super) is_idempotent: bool,
    /// Whether its calls need approval.
    pub(super) asks: bool,
    /// Whether tools may start before the model's terminal event.
    pub(super) eager: bool,
    pub(super) started: Started,
    pub(super) model: Model,
    pub(super) fuse: Fuse,
}

impl Counted {
    /// Records the effect, and checks that it is allowed.
    fn start(&self, call: &Invocation) {
        let mut pages = self.model.book.pages();
        let turn = pages.name(call.turn_id.as_str());
        pages.note(|| format!("{turn}: {} starts for {} of step {}", self.name, call.call_id, call.step));
        let mut started = self.started.lock().unwrap_or_else(PoisonError::into_inner);
        let times = started.entry((call.turn_id.to_string(), call.step, call.call_id.clone())).or_default();
        *times += 1;
        if *times > 1 && !self.is_idempotent {
            pages.wrong(format!("{} was started {times} times for call {}", self.name, call.call_id));
        }
        if self.asks && !pages.allowed.contains(&(call.turn_id.to_string(), call.step, call.call_id.clone()))
        {
            pages.wrong(format!("{} was started for call {} without approval", self.name, call.call_id));
        }
        pages.tally.count(if *times > 1 { "a tool runs again" } else { "a tool runs" });
        drop(pages);
        let text = call.input["text"].as_str().map(str::to_owned);
        let step = call.input["step"].as_u64().and_then(|step| usize::try_from(step).ok());
        match text.zip(step) {
            Some(place) if self.eager || self.model.asked(&place).answered => {}
            Some(place) => self.model.book.wrong(format!("a tool runs before {place:?} was answered")),
            None => self.model.book.wrong(format!("a tool runs with {:?}", call.input)),
        }
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
        self.fuse.pass(Point::Tool).await;
        self.start(&call);
        self.fuse.pass(Point::Tool).await;
        call.output.write(OutputStream::Stdout, format!("{} works", self.name)).await;
        tokio::time::sleep(Duration::from_millis(call.input["ms"].as_u64().unwrap_or(0))).await;
        self.fuse.pass(Point::Tool).await;
        ToolAnswer::ok(format!("{} of {}", self.name, call.call_id))
    }
}
