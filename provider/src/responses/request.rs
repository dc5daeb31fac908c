//! Builds requests of the Responses API.

use everturn_kernel::{Request, ToolSpec};
use everturn_wire::{Chunk, Image, Message, Parameters, ResponseFormat, Role, ToolChoice, Value};
use serde_json::{Map, json};

use super::{ResponsesConfig, echo::Returned};
use crate::{
    call_id::{CallIds, digest},
    history::{self, PDF_NAME, instructions, text},
    parameter::{merge, put},
};

/// Maximum length of a call id that the API accepts, in bytes.
const LONGEST_ID: usize = 64;

/// OpenAI models that never reason. They reject a request for encrypted reasoning; all later ones accept it.
const UNREASONING: &[&str] = &["gpt-3.5", "gpt-4", "chatgpt-4o", "gpt-5-chat"];

/// Builds the body. Only echoes of `origin` are sent back.
pub(super) fn body(config: &ResponsesConfig, origin: &str, request: &Request) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("store".to_owned(), json!(false));
    let instructions = instructions(&request.messages);
    if !instructions.is_empty() {
        body.insert("instructions".to_owned(), json!(instructions));
    }
    let mut ids = CallIds::new(id, &request.tools);
    let input = request.messages.iter().flat_map(|message| items(message, origin, &mut ids));
    body.insert("input".to_owned(), input.collect());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|spec| tool(spec, config.strict_tools));
        body.insert("tools".to_owned(), tools.collect());
    }
    if let Some(limit) = request.max_output_tokens {
        body.insert("max_output_tokens".to_owned(), json!(limit));
    }
    if let Some(effort) = &request.reasoning_effort {
        body.insert("reasoning".to_owned(), json!({ "effort": effort, "summary": "auto" }));
    }
    passed_on(&request.parameters, &mut body);
    if reasons(&request.model) {
        body.insert("include".to_owned(), json!(["reasoning.encrypted_content"]));
    }
    merge(&mut body, &config.extra_body);
    body.insert("stream".to_owned(), json!(true));
    Value::Object(body)
}

/// The parameters that the API has. It has no stop sequences, seed or penalties.
pub(super) const PARAMETERS: [&str; 5] =
    ["temperature", "topP", "toolChoice", "responseFormat", "parallelToolCalls"];

fn passed_on(parameters: &Parameters, body: &mut Map<String, Value>) {
    let choice = parameters.tool_choice.as_ref().map(|choice| match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Tool { name } => json!({ "type": "function", "name": name }),
    });
    let format = parameters.response_format.as_ref().map(|format| match format {
        ResponseFormat::Text => json!({ "type": "text" }),
        ResponseFormat::JsonObject => json!({ "type": "json_object" }),
        ResponseFormat::JsonSchema { name, schema, strict } => {
            let mut format = json!({ "type": "json_schema", "name": name, "schema": schema });
            if let Some(strict) = strict {
                format["strict"] = json!(strict);
            }
            format
        }
    });
    let fields = [
        ("temperature", parameters.temperature.map(Value::from)),
        ("top_p", parameters.top_p.map(Value::from)),
        ("tool_choice", choice),
        ("text", format.map(|format| json!({ "format": format }))),
        ("parallel_tool_calls", parameters.parallel_tool_calls.map(Value::from)),
    ];
    put(body, fields);
}

/// Whether the model reasons. Gateways prefix the name with a vendor, and OpenAI marks tuned models with a prefix.
fn reasons(model: &str) -> bool {
    let name = model.rsplit('/').next().unwrap_or_default().trim_start_matches("ft:");
    !UNREASONING.iter().any(|known| name.starts_with(known))
}

/// Converts a message to zero or more items.
fn items<'a>(message: &'a Message, origin: &str, ids: &mut CallIds<'a>) -> Vec<Value> {
    match message.role {
        Role::User => heard(message).into_iter().collect(),
        Role::Assistant => assistant(message, origin, ids),
        Role::Tool => message.iter().filter_map(|chunk| result(chunk, ids)).collect(),
        _ => Vec::new(),
    }
}

fn heard(message: &Message) -> Option<Value> {
    let parts: Vec<Value> = message.iter().filter_map(part).collect();
    (!parts.is_empty()).then(|| json!({ "type": "message", "role": "user", "content": parts }))
}

/// Converts an assistant message. Each piece follows the reasoning that led to it. Reasoning that led to nothing is
/// omitted, because it would be rejected.
fn assistant<'a>(message: &'a Message, origin: &str, ids: &mut CallIds<'a>) -> Vec<Value> {
    let mut items = Vec::new();
    let mut returned = Returned::default();
    for chunk in message.iter() {
        if let Chunk::Thinking { echo, .. } | Chunk::ToolCall { echo, .. } = chunk {
            returned.add(echo.as_ref(), origin);
        }
        if let Some(item) = spoken(chunk, returned.phase.as_ref()).or_else(|| call(chunk, ids)) {
            items.append(&mut returned.reasoning);
            items.push(item);
            returned.phase = None;
        }
    }
    items
}

/// Uses plain text, because strict servers accept assistant parts only with the id of the message.
fn spoken(chunk: &Chunk, phase: Option<&Value>) -> Option<Value> {
    let mut item = json!({ "type": "message", "role": "assistant", "content": text(chunk)? });
    if let Some(phase) = phase {
        item["phase"] = phase.clone();
    }
    Some(item)
}

fn call<'a>(chunk: &'a Chunk, ids: &mut CallIds<'a>) -> Option<Value> {
    let Chunk::ToolCall { tool_call_id, tool_name, input, echo, .. } = chunk else { return None };
    let (id, name) = (ids.call(tool_call_id), ids.tool(tool_name));
    let arguments = history::written_arguments(input, echo.as_ref());
    Some(json!({ "type": "function_call", "call_id": id, "name": name, "arguments": arguments }))
}

fn result(chunk: &Chunk, ids: &CallIds<'_>) -> Option<Value> {
    let Chunk::ToolResult { tool_call_id, content, images, .. } = chunk else { return None };
    let output = match images.is_empty() {
        true => json!(content),
        false => {
            let text = json!({ "type": "input_text", "text": content });
            [text].into_iter().chain(images.iter().map(|shown| image(&shown.url))).collect()
        }
    };
    Some(json!({ "type": "function_call_output", "call_id": ids.result(tool_call_id), "output": output }))
}

fn part(chunk: &Chunk) -> Option<Value> {
    match chunk {
        Chunk::Image { url, mime_type } if Image::is_pdf(url, mime_type.as_deref()) => Some(pdf(url)),
        Chunk::Image { url, .. } => Some(image(url)),
        other => text(other).map(|text| json!({ "type": "input_text", "text": text })),
    }
}

fn image(url: &str) -> Value {
    json!({ "type": "input_image", "image_url": url, "detail": "auto" })
}

fn pdf(url: &str) -> Value {
    match url.starts_with("data:") {
        true => json!({ "type": "input_file", "filename": PDF_NAME, "file_data": url }),
        false => json!({ "type": "input_file", "file_url": url }),
    }
}

/// Shortens an id to the length that the API accepts. Other providers and gateways produce longer ones.
fn id(id: &str) -> String {
    if id.len() <= LONGEST_ID {
        return id.to_owned();
    }
    let digest = format!("_{:016x}", digest(id));
    let kept = id.floor_char_boundary(LONGEST_ID - digest.len());
    format!("{}{digest}", &id[..kept])
}

fn tool(spec: &ToolSpec, strict: bool) -> Value {
    let parameters = match &spec.parameters {
        Value::Null => json!({ "type": "object", "properties": {} }),
        schema => schema.clone(),
    };
    json!({
        "type": "function",
        "name": spec.name,
        "description": spec.description,
        "parameters": parameters,
        "strict": strict,
    })
}

#[cfg(test)]
mod tests;
