//! What is asked: a request in the words of the Chat Completions API.

mod transcript;

use everturn_kernel::{Request, ToolSpec};
use everturn_wire::Value;
use serde_json::{Map, json};

use super::ChatConfig;
use transcript::messages;

/// `origin` is whose echoes are given back.
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
    if config.include_usage {
        body.insert("stream_options".to_owned(), json!({ "include_usage": true }));
    }
    body.extend(config.extra_body.clone());
    body.insert("stream".to_owned(), json!(true));
    Value::Object(body)
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
