//! What a request specifies for its turn.

use std::sync::Arc;

use everturn_kernel::ToolSpec;
use everturn_wire::{CallerTool, Parameters, ToolChoice};
use serde::{Deserialize, Serialize};

/// The parameters, tools and instructions that a request specifies for its turn only.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
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
    pub fn parameters_of(&self, step: u32) -> Arc<Parameters> {
        let is_demand =
            matches!(self.parameters.tool_choice, Some(ToolChoice::Required | ToolChoice::Tool { .. }));
        match is_demand && step > 0 {
            true => Arc::new(Parameters { tool_choice: None, ..(*self.parameters).clone() }),
            false => self.parameters.clone(),
        }
    }

    /// Returns the caller's tools as models see them; `None` if the configured ones are offered.
    pub fn specs(&self) -> Option<Arc<[ToolSpec]>> {
        let spec = |tool: &CallerTool| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.input_schema.clone(),
        };
        let tools = self.tools.as_deref().or(self.bare.then_some(&[]));
        tools.map(|tools| tools.iter().map(spec).collect())
    }
}

fn is_empty(parameters: &Arc<Parameters>) -> bool {
    parameters.is_empty()
}
