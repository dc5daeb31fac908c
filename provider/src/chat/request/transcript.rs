//! Converts a conversation to messages of this API.

use everturn_kernel::Request;
use everturn_wire::{Chunk, Image, Message, Role, Value};
use serde_json::json;

use crate::{
    call_id::{CallIds, digest},
    chat::{ChatConfig, HistoryForm, ReturnReasoning},
    history::{PDF_NAME, text, written_arguments},
};

/// Placeholder for missing reasoning. Some servers treat an empty text as missing.
const NO_THOUGHT: &str = " ";

/// Assistant text inserted between tool results and a user message if the API requires one.
const BRIDGE: &str = "(interrupted)";

/// Converts the history. Only echoes of `origin` are sent back.
pub(super) fn messages(config: &ChatConfig, origin: &str, request: &Request) -> Value {
    let is_strict = config.history == HistoryForm::Mistral;
    let mut ids = CallIds::new(if is_strict { nine } else { str::to_owned }, &request.tools);
    let (mut written, mut last) = (Vec::new(), None);
    for (role, chunks) in turns(&request.messages) {
        if is_strict && (last, role) == (Some(Role::Tool), Role::User) {
            written.extend(said("assistant", BRIDGE));
        }
        last = Some(role);
        match role {
            Role::System => written.extend(said("system", &joined(&chunks, "\n\n"))),
            Role::User => written.push(json!({ "role": "user", "content": asked(&chunks) })),
            Role::Assistant => {
                let mut message = answered(&chunks, &mut ids);
                give_back(config.return_reasoning, origin, &chunks, &mut message);
                written.push(message);
            }
            // In this API, each result is a separate message.
            Role::Tool => written.extend(chunks.iter().filter_map(|chunk| result(chunk, &ids))),
            _ => {}
        }
    }
    Value::Array(written)
}

/// Groups the history by role. Consecutive user messages are merged, for example after an answer of only reasoning,
/// because many chat templates require alternating roles.
fn turns(all: &[Message]) -> Vec<(Role, Vec<&Chunk>)> {
    let mut turns: Vec<(Role, Vec<&Chunk>)> = Vec::new();
    for message in all.iter().filter(|message| message.iter().any(is_said)) {
        match turns.last_mut() {
            Some((Role::User, held)) if message.role == Role::User => held.extend(message.iter()),
            _ => turns.push((message.role, message.iter().collect())),
        }
    }
    turns
}

fn is_said(chunk: &Chunk) -> bool {
    text(chunk).is_some()
        || matches!(chunk, Chunk::ToolCall { .. } | Chunk::ToolResult { .. } | Chunk::Image { .. })
}

fn said(role: &str, text: &str) -> Option<Value> {
    (!text.is_empty()).then(|| json!({ "role": role, "content": text }))
}

fn joined(chunks: &[&Chunk], separator: &str) -> String {
    chunks.iter().filter_map(|chunk| text(chunk)).collect::<Vec<_>>().join(separator)
}

/// Sends plain text unless there are images, because not all servers accept parts.
fn asked(chunks: &[&Chunk]) -> Value {
    if chunks.iter().any(|chunk| matches!(chunk, Chunk::Image { .. })) {
        chunks.iter().filter_map(|chunk| part(chunk)).collect()
    } else {
        joined(chunks, "\n\n").into()
    }
}

fn part(chunk: &Chunk) -> Option<Value> {
    match chunk {
        Chunk::Image { url, mime_type } if Image::is_pdf(url, mime_type.as_deref()) => {
            Some(json!({ "type": "file", "file": { "filename": PDF_NAME, "file_data": url } }))
        }
        Chunk::Image { url, .. } => Some(json!({ "type": "image_url", "image_url": { "url": url } })),
        other => text(other).map(|text| json!({ "type": "text", "text": text })),
    }
}

fn answered<'a>(chunks: &[&'a Chunk], ids: &mut CallIds<'a>) -> Value {
    let text = joined(chunks, "");
    let calls: Vec<Value> = chunks.iter().filter_map(|chunk| call(chunk, ids)).collect();
    if calls.is_empty() {
        return json!({ "role": "assistant", "content": text });
    }
    let content = if text.is_empty() { Value::Null } else { Value::String(text) };
    json!({ "role": "assistant", "content": content, "tool_calls": calls })
}

fn call<'a>(chunk: &'a Chunk, ids: &mut CallIds<'a>) -> Option<Value> {
    let Chunk::ToolCall { tool_call_id, tool_name, input, echo, .. } = chunk else { return None };
    let written = written_arguments(input, echo.as_ref());
    let function = json!({ "name": ids.tool(tool_name), "arguments": written });
    Some(json!({ "id": ids.call(tool_call_id), "type": "function", "function": function }))
}

fn result(chunk: &Chunk, ids: &CallIds<'_>) -> Option<Value> {
    let Chunk::ToolResult { tool_call_id, content, .. } = chunk else { return None };
    Some(json!({ "role": "tool", "tool_call_id": ids.result(tool_call_id), "content": content }))
}

/// Adds the reasoning to an assistant message.
fn give_back(way: ReturnReasoning, origin: &str, chunks: &[&Chunk], message: &mut Value) {
    match way {
        ReturnReasoning::Never => {}
        // The field is required if the model called tools.
        ReturnReasoning::Content => {
            let thought: String = chunks.iter().filter_map(|chunk| thought(chunk)).collect();
            message["reasoning_content"] =
                if thought.is_empty() { NO_THOUGHT.into() } else { thought.into() };
        }
        ReturnReasoning::Details => {
            let details = chunks.iter().filter_map(|chunk| details(origin, chunk));
            let details: Vec<Value> = details.flatten().cloned().collect();
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

/// Converts an id to nine letters and digits.
fn nine(id: &str) -> String {
    if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return id.to_owned();
    }
    format!("{:016x}", digest(id))[..9].to_owned()
}
