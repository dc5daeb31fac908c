//! The complete response, as in the last event.

use everturn_kernel::FinishReason;
use everturn_wire::{Usage, Value};
use serde::{Deserialize, de::IgnoredAny};

use super::Item;

/// The complete response, as in the last event.
#[derive(Debug, Default, Deserialize)]
pub(in crate::responses) struct Response {
    status: Option<String>,
    error: Option<IgnoredAny>,
    incomplete_details: Option<Details>,
    pub(in crate::responses) usage: Option<Value>,
    pub(in crate::responses) model: Option<Value>,
    pub(in crate::responses) service_tier: Option<Value>,
    pub(in crate::responses) output: Option<Vec<Item>>,
}

#[derive(Debug, Deserialize)]
struct Details {
    reason: Option<String>,
}

impl Response {
    /// Returns why the model stopped; `None` if it failed, or stopped early without a reason. Does not rely on the name
    /// of the event, because some servers use one name for all ends.
    pub(in crate::responses) fn finish_reason(&self, is_incomplete: bool) -> Option<FinishReason> {
        let status = self.status.as_deref().unwrap_or_default();
        if self.error.is_some() || matches!(status, "failed" | "cancelled") {
            return None;
        }
        let details = self.incomplete_details.as_ref();
        match details.and_then(|details| details.reason.as_deref()) {
            Some("content_filter") => Some(FinishReason::ContentFilter),
            Some(_) => Some(FinishReason::Length),
            None => (!is_incomplete && status != "incomplete").then_some(FinishReason::Stop),
        }
    }
}

/// Returns a payload without the parts that repeat the request, because failure messages must not reveal the
/// instructions.
pub(in crate::responses) fn told(payload: &str) -> String {
    let of_answer =
        |name: &str| matches!(name, "id" | "object" | "status" | "error" | "incomplete_details" | "usage");
    match serde_json::from_str::<Value>(payload) {
        Ok(mut event) if event["response"].is_object() => {
            if let Some(response) = event["response"].as_object_mut() {
                response.retain(|name, _| of_answer(name));
            }
            event.to_string()
        }
        _ => payload.to_owned(),
    }
}

pub(crate) fn usage(counts: &Value) -> Option<Usage> {
    let count = |path: &str| counts.pointer(path).and_then(Value::as_u64);
    let (input, output) = (count("/input_tokens"), count("/output_tokens"));
    (input.is_some() || output.is_some()).then(|| Usage {
        input_tokens: input.unwrap_or(0),
        output_tokens: output.unwrap_or(0),
        cache_read_tokens: count("/input_tokens_details/cached_tokens"),
        cache_write_tokens: count("/input_tokens_details/cache_write_tokens"),
        reasoning_tokens: count("/output_tokens_details/reasoning_tokens"),
    })
}
