//! What a request specifies for its turn.

use std::sync::Arc;

use everturn_kernel::ToolSpec;
use everturn_wire::{CallerTool, Parameters, Priority, RequiredReport, ToolChoice, Value};
use serde::{Deserialize, Serialize};

/// The parameters, tools and instructions that a request specifies for its turn only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct RequestScope {
    /// Parameters passed to the model's API.
    #[serde(skip_serializing_if = "is_empty")]
    pub parameters: Arc<Parameters>,
    /// Tools that the caller runs, offered instead of the configured ones. `None` = the request has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<CallerTool>>,
    /// Instructions that replace the configured ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<String>,
    /// Whether nothing is added to the request: no configured tools, no system prompt, no summary of its history. Calls of
    /// unknown tools go to the caller.
    #[serde(skip_serializing_if = "core::ops::Not::not")]
    pub bare: bool,
}

impl RequestScope {
    /// Returns the parameters of a step. Only the first step demands a tool call: otherwise the turn would never
    /// answer.
    pub(crate) fn parameters_of(&self, step: u32) -> Arc<Parameters> {
        let is_demand =
            matches!(self.parameters.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool { .. }));
        match is_demand && step > 0 {
            true => Arc::new(Parameters { tool_choice: None, ..(*self.parameters).clone() }),
            false => self.parameters.clone(),
        }
    }

    /// Returns the caller's tools as models see them; `None` if the configured ones are offered.
    pub(crate) fn specs(&self) -> Option<Arc<[ToolSpec]>> {
        let spec = |tool: &CallerTool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.input_schema.clone(),
        };
        let tools = self.tools.as_deref().or(self.bare.then_some(&[]));
        tools.map(|tools| tools.iter().map(spec).collect())
    }
}

/// What a request set for its turn: inherited by a turn that repeats that one or follows it from the queue.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Inherited {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) scope: Option<Arc<RequestScope>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reasoning_effort: Option<String>,
    pub(crate) priority: Priority,
    /// The report that the request itself required.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) final_report: Option<Arc<RequiredReport>>,
}

impl Inherited {
    /// Returns the form that is kept with the figures of a sealed turn; `None` if the request set nothing.
    pub(crate) fn kept(&self) -> Option<Box<Value>> {
        if *self == Self::default() {
            return None;
        }
        serde_json::to_value(self).ok().map(Box::new)
    }

    /// Reads the kept form. That of a newer version which cannot be read counts as nothing.
    pub(crate) fn read(kept: Option<&Value>) -> Self {
        kept.and_then(|kept| Self::deserialize(kept).ok()).unwrap_or_default()
    }
}

fn is_empty(parameters: &Arc<Parameters>) -> bool {
    parameters.is_empty()
}
