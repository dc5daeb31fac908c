//! Tools that a model can call.

mod excerpt;
mod output;
mod people;
mod policy;
mod source;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use everturn_kernel::{ToolAnswer, ToolSpec};
use everturn_wire::{ConversationId, ToolAnnotations, TurnId, Value};

pub(crate) use excerpt::excerpt;
pub use output::Output;
pub use people::{Ask, People, Reply};
pub use policy::Policy;
pub use source::{SourceState, ToolSource};

/// A tool that the model can call.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// Returns the description of the tool for the model.
    fn spec(&self) -> ToolSpec;

    /// Whether a call may run again if a crash left it without a result. Default: no.
    fn is_idempotent(&self) -> bool {
        false
    }

    /// Whether it is offered to turns that begin now. Default: yes.
    fn is_offered(&self) -> bool {
        true
    }

    /// The policy for the tool's calls if no configured rule matches ([`Policy`]).
    fn policy(&self) -> Policy {
        Policy::Allow
    }

    /// The provider's claims about the tool. Shown to people; they have no effect.
    fn annotations(&self) -> Option<ToolAnnotations> {
        None
    }

    /// Runs a call. The future is dropped when the turn is stopped; a panic ends the turn. The middle of results longer
    /// than [`Builder::max_tool_result`](crate::Builder::max_tool_result) is cut.
    async fn run(&self, call: Invocation) -> ToolAnswer;
}

/// A call of a tool.
#[derive(Debug)]
#[non_exhaustive]
pub struct Invocation {
    /// The conversation of the call.
    pub conversation_id: ConversationId,
    /// The turn of the call.
    pub turn_id: TurnId,
    /// The step of the turn.
    pub step: u32,
    /// The provider's id for the call, unique in its step.
    pub call_id: String,
    /// The arguments.
    pub input: Value,
    /// Publishes live output.
    pub output: Output,
    /// Asks the people who follow the conversation.
    pub people: People,
}

/// The tools offered to turns, by name. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ToolSet {
    tools: Arc<BTreeMap<String, Arc<dyn Tool>>>,
    specs: Arc<[ToolSpec]>,
}

impl ToolSet {
    /// Creates a set. A later tool replaces an earlier one with the same name.
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let tools: BTreeMap<_, _> = tools.into_iter().map(|tool| (tool.spec().name, tool)).collect();
        let specs = tools.values().map(|tool| tool.spec()).collect();
        Self { tools: Arc::new(tools), specs }
    }

    /// Tools that the caller runs: only their specs are known.
    pub(crate) fn of_caller(specs: Arc<[ToolSpec]>) -> Self {
        Self { tools: Arc::default(), specs }
    }

    /// Returns the tools with the given names.
    pub(crate) fn only(&self, names: &[String]) -> Self {
        if self.tools.keys().eq(names) {
            return self.clone();
        }
        Self::new(names.iter().filter_map(|name| self.get(name)).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).cloned()
    }

    /// Whether both are the same set, by identity.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.tools, &other.tools)
    }

    pub(crate) fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.specs.iter().map(|spec| spec.name.as_str())
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = (&str, &dyn Tool)> {
        self.tools.iter().map(|(name, tool)| (name.as_str(), tool.as_ref()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<dyn Tool>> {
        self.tools.values()
    }

    pub(crate) fn idempotent(&self) -> Vec<String> {
        self.tools.iter().filter(|(_, tool)| tool.is_idempotent()).map(|(name, _)| name.clone()).collect()
    }
}
