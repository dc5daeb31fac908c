//! Builds requests of the Chat Completions API.

mod transcript;

use everturn_kernel::{Request, ToolSpec};
use everturn_wire::{Parameters, ResponseFormat, ToolChoice, Value};
use serde_json::{Map, json};

use super::ChatConfig;
use crate::parameter::{merge, put, stop};
use transcript::messages;

/// Builds the body. Only echoes of `origin` are sent back.
pub(super) fn body(config: &ChatConfig, origin: &str, request: &Request) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), messages(config, origin, request));
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    if let Some(limit) = request.max_output_tokens {
        body.insert(config.output_limit.field().to_owned(), json!(limit));
    }
    if let Some(effort) = &request.reasoning_effort {
        body.insert("reasoning_effort".to_owned(), json!(effort));
    }
    passed_on(&request.parameters, !request.tools.is_empty(), &mut body);
    if config.include_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    merge(&mut body, &config.extra_body);
    body.insert("stream".to_owned(), json!(true));
    Value::Object(body)
}

/// Adds the parameters; the API has a field for each, and refuses what is about tools without any.
fn passed_on(parameters: &Parameters, has_tools: bool, body: &mut Map<String, Value>) {
    let choice = parameters.tool_choice.as_ref().map(|choice| match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool { name } => json!({ "type": "function", "function": { "name": name } }),
    });
    let format = parameters.response_format.as_ref().map(|format| match format {
        ResponseFormat::Text => json!({ "type": "text" }),
        ResponseFormat::JsonObject => json!({ "type": "json_object" }),
        ResponseFormat::JsonSchema { name, schema, strict } => {
            let mut schema = json!({ "name": name, "schema": schema });
            if let Some(strict) = strict {
                schema["strict"] = json!(strict);
            }
            json!({ "type": "json_schema", "json_schema": schema })
        }
    });
    let fields = [
        ("temperature", parameters.temperature.map(Value::from)),
        ("top_p", parameters.top_p.map(Value::from)),
        ("stop", stop(parameters)),
        ("tool_choice", choice.filter(|_| has_tools)),
        ("response_format", format),
        ("parallel_tool_calls", parameters.parallel_tool_calls.filter(|_| has_tools).map(Value::from)),
        ("seed", parameters.seed.map(Value::from)),
        ("presence_penalty", parameters.presence_penalty.map(Value::from)),
        ("frequency_penalty", parameters.frequency_penalty.map(Value::from)),
    ];
    put(body, fields);
}

fn tool(spec: &ToolSpec) -> Value {
    let parameters = match &spec.parameters {
        Value::Null => json!({ "type": "object", "properties": {} }),
        schema => schema.clone(),
    };
    json!({
        "type": "function",
        "function": { "name": spec.name, "description": spec.description, "parameters": parameters },
    })
}

#[cfg(test)]
mod tests;
