//! What is asked: a request in the words of the Chat Completions API.

use everturn_kernel::{Request, ToolSpec};
use everturn_wire::{Chunk, Message, Role, Value};
use serde_json::{Map, json};

use super::{ChatConfig, ReturnReasoning};

/// `origin` is whose echoes are given back.
pub(super) fn body(config: &ChatConfig, origin: &str, request: &Request) -> Value {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(request.model));
    body.insert("messages".to_owned(), messages(config.return_reasoning, origin, &request.messages));
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

fn messages(way: ReturnReasoning, origin: &str, all: &[Message]) -> Value {
    let mut written = Vec::new();
    for message in all {
        let begin = written.len();
        written.extend(self::message(message));
        if message.role == Role::Assistant
            && let Some(last) = written[begin..].last_mut()
        {
            give_back(way, origin, &message.chunks, last);
        }
    }
    Value::Array(written)
}

/// Adds the reasoning to a message of the model's.
fn give_back(way: ReturnReasoning, origin: &str, chunks: &[Chunk], message: &mut Value) {
    match way {
        ReturnReasoning::Never => {}
        // Where the model called tools the field must be there, though it be empty.
        ReturnReasoning::Content => {
            message["reasoning_content"] = chunks.iter().filter_map(thought).collect::<String>().into();
        }
        ReturnReasoning::Details => {
            let details: Vec<Value> =
                chunks.iter().filter_map(|chunk| details(origin, chunk)).flatten().cloned().collect();
            if !details.is_empty() {
                message["reasoning_details"] = details.into();
            }
        }
    }
}

fn thought(chunk: &Chunk) -> Option<&str> {
    match chunk {
        Chunk::Thinking { text, .. } => Some(text),
        _ => None,
    }
}

fn details<'c>(origin: &str, chunk: &'c Chunk) -> Option<&'c Vec<Value>> {
    match chunk {
        Chunk::Thinking { echo: Some(echo), .. } if echo.origin == origin => echo.data.as_array(),
        _ => None,
    }
}

/// A message as none, one or several of the API's: each tool result is a message of its own there.
fn message(message: &Message) -> Vec<Value> {
    let chunks = &message.chunks;
    match message.role {
        Role::System => said("system", &joined(chunks, "\n\n")),
        Role::User if chunks.iter().any(|chunk| matches!(chunk, Chunk::Image { .. })) => {
            vec![json!({ "role": "user", "content": chunks.iter().filter_map(part).collect::<Vec<_>>() })]
        }
        Role::User => said("user", &joined(chunks, "\n\n")),
        Role::Assistant => assistant(chunks),
        Role::Tool => chunks.iter().filter_map(result).collect(),
    }
}

fn said(role: &str, text: &str) -> Vec<Value> {
    if text.is_empty() { Vec::new() } else { vec![json!({ "role": role, "content": text })] }
}

fn assistant(chunks: &[Chunk]) -> Vec<Value> {
    let text = joined(chunks, "");
    let calls: Vec<Value> = chunks.iter().filter_map(call).collect();
    if calls.is_empty() {
        return said("assistant", &text);
    }
    let content = if text.is_empty() { Value::Null } else { Value::String(text) };
    vec![json!({ "role": "assistant", "content": content, "tool_calls": calls })]
}

/// What a chunk says to the model. Reasoning is the model's own and errors are for people: neither is sent.
fn text(chunk: &Chunk) -> Option<&str> {
    match chunk {
        Chunk::Text { text } | Chunk::System { text } => (!text.is_empty()).then_some(text),
        Chunk::Thinking { .. }
        | Chunk::ToolCall { .. }
        | Chunk::ToolResult { .. }
        | Chunk::Error { .. }
        | Chunk::Image { .. } => None,
    }
}

fn joined(chunks: &[Chunk], separator: &str) -> String {
    chunks.iter().filter_map(text).collect::<Vec<_>>().join(separator)
}

fn part(chunk: &Chunk) -> Option<Value> {
    match chunk {
        Chunk::Image { url, .. } => Some(json!({ "type": "image_url", "image_url": { "url": url } })),
        other => text(other).map(|text| json!({ "type": "text", "text": text })),
    }
}

fn call(chunk: &Chunk) -> Option<Value> {
    let Chunk::ToolCall { tool_call_id, tool_name, input, .. } = chunk else { return None };
    // Servers parse the arguments of past calls and expect an object, so those that never parsed are wrapped.
    let arguments = match input {
        Value::Object(_) => input.to_string(),
        Value::Null => "{}".to_owned(),
        malformed => json!({ "malformed": malformed }).to_string(),
    };
    let function = json!({ "name": tool_name, "arguments": arguments });
    Some(json!({ "id": tool_call_id, "type": "function", "function": function }))
}

fn result(chunk: &Chunk) -> Option<Value> {
    let Chunk::ToolResult { tool_call_id, content, .. } = chunk else { return None };
    Some(json!({ "role": "tool", "tool_call_id": tool_call_id, "content": content }))
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
