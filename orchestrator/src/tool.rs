//! Tools: what the model may have done on its behalf.

mod excerpt;

use std::{collections::BTreeMap, sync::Arc};

use async_trait::async_trait;
use everturn_kernel::{Input, ToolAnswer, ToolSpec};
use everturn_wire::{ConversationId, OutputStream, TurnId, Value};
use tokio::sync::mpsc;

pub(crate) use excerpt::excerpt;

/// Something that the model may have done.
#[async_trait]
pub trait Tool: Send + Sync + 'static {
    /// How the model sees it.
    fn spec(&self) -> ToolSpec;

    /// Whether it may run again when a crash left a call without its result. When in doubt: no.
    fn is_idempotent(&self) -> bool {
        false
    }

    /// Does it. The future is dropped when the turn is stopped; a panic ends the turn. Of a result longer than
    /// [`Builder::max_tool_result`](crate::Builder::max_tool_result), the beginning and the end are kept.
    async fn run(&self, call: Invocation) -> ToolAnswer;
}

/// One call of a tool.
#[derive(Debug)]
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

/// Live output of a running tool: shown to those who watch, never to the model.
#[derive(Clone, Debug)]
pub struct Output {
    pub(crate) call_id: String,
    pub(crate) inbox: mpsc::Sender<Box<Input>>,
}

impl Output {
    /// Shows a piece of text. Waits while watchers are being told what came before.
    pub async fn write(&self, stream: OutputStream, data: impl Into<String> + Send) {
        let input = Input::ToolOutput { call_id: self.call_id.clone(), stream, data: data.into() };
        // Nobody listens any more when the turn is over: then there is nobody to show it to.
        let _ = self.inbox.send(Box::new(input)).await;
    }
}

/// The tools of an orchestrator, by name.
#[derive(Clone, Default)]
pub(crate) struct ToolSet {
    tools: BTreeMap<String, Arc<dyn Tool>>,
    specs: Arc<[ToolSpec]>,
}

impl ToolSet {
    /// A later tool replaces an earlier one of its name.
    pub(crate) fn new(tools: Vec<Arc<dyn Tool>>) -> Self {
        let tools: BTreeMap<_, _> = tools.into_iter().map(|tool| (tool.spec().name, tool)).collect();
        let specs = tools.values().map(|tool| tool.spec()).collect();
        Self { tools, specs }
    }

    pub(crate) fn get(&self, name: &str) -> Option<Arc<dyn Tool>> {
        self.tools.get(name).cloned()
    }

    pub(crate) fn specs(&self) -> Arc<[ToolSpec]> {
        self.specs.clone()
    }

    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }

    pub(crate) fn idempotent(&self) -> Vec<String> {
        self.tools.iter().filter(|(_, tool)| tool.is_idempotent()).map(|(name, _)| name.clone()).collect()
    }
}
