//! Tools, tool choice, and response format.

use everturn_wire::{CallerTool, ResponseFormat, ToolChoice, Value};
use serde::Deserialize;

use crate::openai::Refusal;

#[derive(Deserialize)]
pub(super) struct Tool {
    #[serde(rename = "type")]
    kind: String,
    function: Option<Function>,
}

/// A function that the client runs. Strict arguments (`strict`) are left to the model's API.
#[derive(Deserialize)]
struct Function {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

/// A keyword, or an object that names a tool.
#[derive(Deserialize)]
#[serde(untagged)]
pub(super) enum Choice {
    Word(String),
    Named {
        #[serde(rename = "type")]
        kind: String,
        function: Option<Name>,
    },
}

#[derive(Deserialize)]
pub(super) struct Name {
    name: String,
}

#[derive(Deserialize)]
pub(super) struct Format {
    #[serde(rename = "type")]
    kind: String,
    json_schema: Option<Schema>,
}

#[derive(Deserialize)]
struct Schema {
    name: String,
    schema: Option<Value>,
    strict: Option<bool>,
}

/// Returns the tools that the client runs.
pub(super) fn tools(tools: Vec<Tool>) -> Result<Vec<CallerTool>, Refusal> {
    let tool = |(at, tool): (usize, Tool)| match (tool.kind.as_str(), tool.function) {
        ("function", Some(Function { name, description, parameters })) => Ok(CallerTool {
            name,
            description: description.unwrap_or_default(),
            input_schema: parameters.unwrap_or_default(),
        }),
        ("function", None) => {
            Err(Refusal::bad(format!("tools[{at}]"), format!("tools[{at}] has no function")))
        }
        _ => {
            let why = format!("tools[{at}] is not a function: other tools are not supported here");
            Err(Refusal::unsupported(format!("tools[{at}]"), why))
        }
    };
    tools.into_iter().enumerate().map(tool).collect()
}

pub(super) fn choice(choice: Choice) -> Result<ToolChoice, Refusal> {
    let refused = |why: &str| Err(Refusal::unsupported("tool_choice", why));
    match choice {
        Choice::Word(word) => match word.as_str() {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            _ => refused("tool_choice must be none, auto, required or a function"),
        },
        Choice::Named { kind, function: Some(Name { name }) } if kind == "function" => {
            Ok(ToolChoice::Tool { name })
        }
        Choice::Named { .. } => refused("tool_choice can name a function, and nothing else"),
    }
}

pub(super) fn format(format: Format) -> Result<ResponseFormat, Refusal> {
    match (format.kind.as_str(), format.json_schema) {
        ("text", _) => Ok(ResponseFormat::Text),
        ("json_object", _) => Ok(ResponseFormat::JsonObject),
        ("json_schema", Some(Schema { name, schema: Some(schema), strict })) => {
            Ok(ResponseFormat::JsonSchema { name, schema, strict })
        }
        ("json_schema", _) => {
            let why = "response_format.json_schema must have a name and a schema";
            Err(Refusal::bad("response_format", why))
        }
        _ => {
            let why = "response_format.type must be text, json_object or json_schema";
            Err(Refusal::unsupported("response_format", why))
        }
    }
}
