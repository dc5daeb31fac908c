//! Builds requests of the Messages API.

use everturn_kernel::{Request, ToolSpec};
use everturn_wire::{Chunk, Image, Parameters, ResponseFormat, Role, ToolChoice, Value};
use serde_json::{Map, json};

use super::{AnthropicConfig, thinking::Thinking};
use crate::{
    call_id::CallIds,
    history::{arguments, inline, instructions, text},
    parameter::{merge, put, stop},
};

/// Builds the body. Only echoes of `origin` are sent back.
pub(super) fn body(config: &AnthropicConfig, origin: &str, request: &Request) -> Value {
    let mut body = Map::new();
    let thinking = Thinking::of(request, origin, &config.extra_body);
    let max_tokens = request.max_output_tokens.unwrap_or(config.max_tokens);
    body.insert("model".to_owned(), json!(request.model));
    body.insert("max_tokens".to_owned(), json!(max_tokens));
    body.insert("messages".to_owned(), messages(request, &thinking));
    let system = instructions(&request.messages);
    if !system.is_empty() {
        body.insert("system".to_owned(), json!(system));
    }
    if !request.tools.is_empty() {
        body.insert("tools".to_owned(), request.tools.iter().map(tool).collect());
    }
    thinking.ask(&mut body, max_tokens);
    passed_on(request, &mut body);
    merge(&mut body, &config.extra_body);
    thinking.pause(&mut body);
    body.insert("stream".to_owned(), json!(true));
    Value::Object(body)
}

/// Returns the parameters that the API does not have: a seed, penalties, and JSON without a schema.
pub(super) fn refuses(parameters: &Parameters) -> Vec<&'static str> {
    let mut known = vec!["temperature", "topP", "stop", "toolChoice", "parallelToolCalls", "responseFormat"];
    if parameters.response_format == Some(ResponseFormat::JsonObject) {
        known.pop();
    }
    parameters.names_beyond(&known)
}

fn passed_on(request: &Request, body: &mut Map<String, Value>) {
    let parameters = &request.parameters;
    let fields = [
        ("temperature", parameters.temperature.map(Value::from)),
        ("top_p", parameters.top_p.map(Value::from)),
        ("stop_sequences", stop(parameters)),
        // The API rejects it without tools.
        ("tool_choice", tool_choice(parameters).filter(|_| !request.tools.is_empty())),
    ];
    put(body, fields);
    if let Some(ResponseFormat::JsonSchema { schema, .. }) = &parameters.response_format {
        let config = body.entry("output_config").or_insert_with(|| json!({}));
        config["format"] = json!({ "type": "json_schema", "schema": schema });
    }
}

/// In this API, parallel calls are part of the tool choice.
fn tool_choice(parameters: &Parameters) -> Option<Value> {
    let single = parameters.parallel_tool_calls.map(|parallel| !parallel);
    let mut choice = match parameters.tool_choice.as_ref() {
        None if single.is_none() => return None,
        None | Some(ToolChoice::Auto) => json!({ "type": "auto" }),
        Some(ToolChoice::None) => return Some(json!({ "type": "none" })),
        Some(ToolChoice::Required) => json!({ "type": "any" }),
        Some(ToolChoice::Tool { name }) => json!({ "type": "tool", "name": name }),
    };
    if let Some(single) = single {
        choice["disable_parallel_tool_use"] = json!(single);
    }
    Some(choice)
}

/// Returns the messages as blocks of two alternating roles.
fn messages(request: &Request, thinking: &Thinking<'_>) -> Value {
    let mut turns: Vec<(&str, Vec<Value>)> = Vec::new();
    let mut ids = CallIds::new(id, &request.tools);
    for (index, message) in request.messages.iter().enumerate() {
        let role = match message.role {
            Role::User | Role::Tool => "user",
            Role::Assistant => "assistant",
            // The system prompt has a separate field.
            _ => continue,
        };
        let chunks = thinking.kept(index, message);
        let blocks: Vec<Value> =
            chunks.filter_map(|chunk| block(message.role, chunk, thinking, &mut ids)).collect();
        match turns.last_mut() {
            _ if blocks.is_empty() => {}
            Some((last, held)) if *last == role => held.extend(blocks),
            _ => turns.push((role, blocks)),
        }
    }
    turns.into_iter().map(|(role, blocks)| json!({ "role": role, "content": blocks })).collect()
}

/// Converts a chunk. Omits errors, which are for people, and foreign reasoning, which would be rejected.
fn block<'a>(role: Role, chunk: &'a Chunk, thinking: &Thinking<'_>, ids: &mut CallIds<'a>) -> Option<Value> {
    match (role, chunk) {
        (Role::Assistant, Chunk::Thinking { .. }) => thinking.block(chunk),
        (_, Chunk::Text { .. } | Chunk::System { .. }) => {
            text(chunk).map(|text| json!({ "type": "text", "text": text }))
        }
        (Role::User, Chunk::Image { url, mime_type }) => Some(image(url, mime_type.as_deref())),
        (Role::Assistant, Chunk::ToolCall { tool_call_id, tool_name, input, .. }) => {
            let (id, name, input) = (ids.call(tool_call_id), ids.tool(tool_name), arguments(input));
            Some(json!({ "type": "tool_use", "id": id, "name": name, "input": input }))
        }
        (Role::Tool, Chunk::ToolResult { tool_call_id, content, is_error, images, .. }) => {
            // An empty error text is rejected.
            let content = if *is_error && content.is_empty() { "(no output)" } else { content };
            let id = ids.result(tool_call_id);
            let shown = images.iter().map(|shown| image(&shown.url, shown.mime_type.as_deref()));
            // Images in an error are rejected, and so is an empty text.
            let content = match images.is_empty() || *is_error {
                true => json!(content),
                false => {
                    let text = (!content.is_empty()).then(|| json!({ "type": "text", "text": content }));
                    text.into_iter().chain(shown).collect()
                }
            };
            let mut result = json!({ "type": "tool_result", "tool_use_id": id, "content": content });
            if *is_error {
                result["is_error"] = json!(true);
            }
            Some(result)
        }
        _ => None,
    }
}

fn image(url: &str, mime_type: Option<&str>) -> Value {
    let source = match inline(url, mime_type) {
        Some((media_type, data)) => json!({ "type": "base64", "media_type": media_type, "data": data }),
        None => json!({ "type": "url", "url": url }),
    };
    let kind = if Image::is_pdf(url, mime_type) { "document" } else { "image" };
    json!({ "type": kind, "source": source })
}

/// Converts an id of any provider to characters that the API allows.
fn id(id: &str) -> String {
    id.chars().map(|c| if c.is_ascii_alphanumeric() || c == '_' || c == '-' { c } else { '_' }).collect()
}

fn tool(spec: &ToolSpec) -> Value {
    let schema = match &spec.parameters {
        Value::Null => json!({ "type": "object", "properties": {} }),
        schema => schema.clone(),
    };
    json!({ "name": spec.name, "description": spec.description, "input_schema": schema })
}

#[cfg(test)]
pub(super) mod tests;
