//! The start and end of a run, and custom events for which AG-UI has no type.

use everturn_wire::{EventBody, Queued, Usage};
use serde_json::{Value, json};

use crate::{event::named, sse::put};

/// Identifies the run that a client requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// The client's id of the conversation.
    pub thread_id: String,
    /// The client's id of the run.
    pub run_id: String,
    /// The protocol version of the client; absent for 0.0.x.
    pub protocol: Option<String>,
}

impl Head {
    /// Whether the client supports protocol 1.0.
    pub(super) fn is_one(&self) -> bool {
        self.protocol.is_some()
    }

    pub(super) fn started(&self, out: &mut Vec<u8>) {
        let mut event = json!({ "type": "RUN_STARTED", "threadId": self.thread_id, "runId": self.run_id });
        if self.is_one() {
            event["protocolVersion"] = "1.0".into();
        }
        put(&event, out);
    }

    pub(super) fn finished(&self, outcome: Option<Value>, usage: Option<&Usage>, out: &mut Vec<u8>) {
        let mut event = json!({ "type": "RUN_FINISHED", "threadId": self.thread_id, "runId": self.run_id });
        if let Some(outcome) = outcome {
            event["outcome"] = outcome;
        }
        if let Some(usage) = usage {
            event["usage"] = json!([counts(usage, self.is_one())]);
        }
        put(&event, out);
    }
}

/// Returns the events of a run for a message that is queued behind the running turn.
pub fn queued(head: &Head, queued: &Queued) -> Vec<u8> {
    let mut out = Vec::new();
    head.started(&mut out);
    put(&json!({ "type": "CUSTOM", "name": "everturn.queued", "value": queued }), &mut out);
    head.finished(Some(json!({ "type": "success" })), None, &mut out);
    out
}

/// Writes an event unchanged as a custom event, for apps that listen for it.
pub(super) fn custom(event: &EventBody, out: &mut Vec<u8>) {
    if let Some((name, value)) = named(event) {
        put(&json!({ "type": "CUSTOM", "name": format!("everturn.{name}"), "value": value }), out);
    }
}

fn counts(usage: &Usage, is_one: bool) -> Value {
    let total = usage.input_tokens.saturating_add(usage.output_tokens);
    let mut counts = json!({ "inputTokens": usage.input_tokens, "outputTokens": usage.output_tokens, "totalTokens": total });
    if let Some(cached) = usage.cache_read_tokens {
        counts["cachedInputTokens"] = cached.into();
    }
    if let Some(written) = usage.cache_write_tokens.filter(|_| is_one) {
        counts["cacheWriteInputTokens"] = written.into();
    }
    counts
}
