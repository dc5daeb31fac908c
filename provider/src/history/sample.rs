//! Sample requests and history for tests.

use everturn_kernel::{Op, Request};
use everturn_wire::{Message, Role, Value};
use serde_json::json;

pub(crate) fn asking(messages: Vec<Message>) -> Request {
    Request {
        op: Op::default(),
        model: "m".into(),
        messages,
        tools: [].into(),
        parameters: Default::default(),
        max_output_tokens: None,
        reasoning_effort: None,
        eager_calls: false,
        trace: None,
    }
}

pub(crate) fn message(role: Role, chunks: &[Value]) -> Message {
    let chunks = chunks.iter().map(|chunk| serde_json::from_value(chunk.clone()).unwrap()).collect();
    Message { role, chunks }
}

pub(crate) fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(crate) fn call(id: &str, input: &Value) -> Value {
    json!({"type": "tool-call", "toolCallId": id, "toolName": "f", "input": input})
}

pub(crate) fn result(id: &str, content: &str, is_error: bool) -> Value {
    json!({"type": "tool-result", "toolCallId": id, "toolName": "f", "content": content, "isError": is_error})
}
