//! Data parts for the client's app, beside the message.

use everturn_wire::{EventBody, Queued};
use serde_json::{Value, json};

use crate::{
    event::named,
    sse::{self, put},
};

/// Returns the answer to a message that is queued behind the running turn.
pub fn queued(queued: &Queued) -> Vec<u8> {
    let mut out = Vec::new();
    transient("queued", &json!(queued), &mut out);
    put(&json!({ "type": "finish", "finishReason": "stop" }), &mut out);
    sse::done(&mut out);
    out
}

/// Writes an event unchanged as a data part, for apps that listen for it.
pub(super) fn told(event: &EventBody, out: &mut Vec<u8>) {
    let Some((name, data)) = named(event) else { return };
    let name = match event {
        EventBody::ProviderRetry { .. } => "retry",
        _ => &name,
    };
    transient(name, &Value::Object(data), out);
}

/// Writes a data part that the client passes to its app and does not keep.
pub(super) fn transient(name: &str, data: &Value, out: &mut Vec<u8>) {
    put(&json!({ "type": format!("data-everturn-{name}"), "data": data, "transient": true }), out);
}
