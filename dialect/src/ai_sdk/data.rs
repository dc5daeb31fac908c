//! What is told beside the message: data for the client's app.

use everturn_wire::{EventBody, Queued};
use serde_json::{Value, json};

use crate::{
    event::named,
    sse::{self, put},
};

/// The answer to a message that waits behind the running turn.
pub fn queued(queued: &Queued) -> Vec<u8> {
    let mut out = Vec::new();
    transient("queued", &json!(queued), &mut out);
    put(&json!({ "type": "finish", "finishReason": "stop" }), &mut out);
    sse::done(&mut out);
    out
}

/// An event that is passed on as it is, for an app that listens to it.
pub(super) fn told(event: &EventBody, out: &mut Vec<u8>) {
    let Some((name, data)) = named(event) else { return };
    let name = match event {
        EventBody::ProviderRetry { .. } => "retry",
        _ => &name,
    };
    transient(name, &Value::Object(data), out);
}

/// Data that the client hands to its app, and does not keep.
pub(super) fn transient(name: &str, data: &Value, out: &mut Vec<u8>) {
    put(&json!({ "type": format!("data-everturn-{name}"), "data": data, "transient": true }), out);
}
