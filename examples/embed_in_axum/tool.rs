//! Your own tool.

use async_trait::async_trait;
use everturn_orchestrator::{
    Invocation, Tool,
    kernel::{ToolAnswer, ToolSpec},
};
use serde_json::json;

/// Returns the temperature of a place.
pub(crate) struct Thermometer;

#[async_trait]
impl Tool for Thermometer {
    fn spec(&self) -> ToolSpec {
        ToolSpec {
            name: "thermometer".to_owned(),
            description: "Says how warm a place is.".to_owned(),
            parameters: json!({
                "type": "object",
                "properties": { "place": { "type": "string" } },
                "required": ["place"],
            }),
        }
    }

    // Reading it twice is harmless, so a call interrupted by a crash may run again.
    fn is_idempotent(&self) -> bool {
        true
    }

    // The model receives an error and can react; it does not end the turn.
    async fn run(&self, call: Invocation) -> ToolAnswer {
        match call.input["place"].as_str() {
            Some("lake") => ToolAnswer::ok("17 °C"),
            Some(place) => ToolAnswer::error(format!("there is no thermometer at {place}")),
            None => ToolAnswer::error("say which place"),
        }
    }
}
