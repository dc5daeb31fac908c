//! OpenAI: requests as sent by clients, and answers as read by strict clients.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod property;
mod reader;
mod request;
mod transcript;

use everturn_dialect::{
    Event,
    openai::{Chunks, Completion, Head},
};
use everturn_wire::{EventBody, Value};
use serde_json::json;

fn head() -> Head {
    Head::new(&"t-1".into(), "main/large", 1_700_000_000)
}

/// Parses events.
fn events(written: Value) -> Vec<EventBody> {
    serde_json::from_value(written).unwrap()
}

/// Returns the stream for a streaming client.
fn streamed(events: &[EventBody], include_usage: bool, holds: bool) -> String {
    let mut chunks = Chunks::new(&head(), include_usage, holds);
    let mut out = Vec::new();
    for event in events {
        chunks.push(&Event::Other(event), &mut out);
    }
    String::from_utf8(out).unwrap()
}

/// Returns status and body for other clients.
fn whole(events: &[EventBody]) -> (u16, Value) {
    let mut completion = Completion::new(head());
    for event in events {
        completion.push(&Event::Other(event));
    }
    assert!(completion.is_over());
    match completion.body() {
        Ok(body) => (200, serde_json::from_str(&body).unwrap()),
        Err(why) => (why.status, why.body()),
    }
}

/// A transient failure.
fn retry() -> Value {
    json!({ "type": "provider-retry", "attempt": 0, "delayMs": 3000, "message": "HTTP 429: {\n\"error\": \"slow\n\ndown\"}", "code": "429" })
}

fn text(delta: &str) -> Value {
    json!({ "type": "text-delta", "delta": delta })
}
