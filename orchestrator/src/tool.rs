//! Tools: what the model may have done on its behalf.

mod excerpt;
mod output;
mod policy;
mod source;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use everturn_kernel::{ToolAnswer, ToolSpec};
use everturn_wire::{ConversationId, ToolAnnotations, TurnId, Value};

pub(crate) use excerpt::excerpt;
pub use output::Output;
pub use policy::Policy;
pub use source::{SourceState, ToolSource};

/// Something that the model may have done.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// How the model sees it.
    fn spec(&self) -> ToolSpec;

    /// Whether it may run again when a crash left a call without its result. When in doubt: no.
    fn is_idempotent(&self) -> bool {
        false
    }

    /// What may be done with its calls where no configured rule names the tool ([`Policy`]).
    fn policy(&self) -> Policy {
        Policy::Allow
    }

    /// What whoever offers it claims about it. Shown to people; nothing follows from it.
    fn annotations(&self) -> Option<ToolAnnotations> {
        None
    }

    /// Does it. The future is dropped when the turn is stopped; a panic ends the turn. Of a result longer than
    /// [`Builder::max_tool_result`](crate::Builder::max_tool_result), the beginning and the end are kept.
    async fn run(&self, call: Invocation) -> ToolAnswer;
}

/// One call of a tool.
#[derive(Debug)]
#[non_exhaustive]
pub struct Invocation {
    /// The conversation it belongs to.
    pub conversation_id: ConversationId,
    /// The turn.
    pub turn_id: TurnId,
    /// The step of the turn.
    pub step: u32,
    /// The provider's id of the call, unique in its step.
    pub call_id: String,
    /// The arguments.
    pub input: Value,
    /// Where live output goes.
    pub output: Output,
}

/// The tools that turns are offered, by name. Cheap to clone.
#[derive(Clone, Default)]
pub(crate) struct ToolSet {
    tools: Arc<BTreeMap<String, Arc<dyn Tool>>>,
    specs: Arc<[ToolSpec]>,
}

impl ToolSet {
    /// A later tool replaces an earlier one of its name.
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let tools: BTreeMap<_, _> = tools.into_iter().map(|tool| (tool.spec().name, tool)).collect();
        let specs = tools.values().map(|tool| tool.spec()).collect();
        Self { tools: Arc::new(tools), specs }
    }

    /// Tools of which only the specs are here: whoever asked runs them.
    pub(crate) fn of_caller(specs: Arc<[ToolSpec]>) -> Self {
        Self { tools: Arc::default(), specs }
    }

    /// Those of them with these names.
    pub(crate) fn only(&self, names: &[String]) -> Self {
        if self.tools.keys().eq(names) {
            return self.clone();
        }
        Self::new(names.iter().filter_map(|name| self.get(name)).collect())
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).cloned()
    }

    /// Whether that is the same one, not only one with the same tools.
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
