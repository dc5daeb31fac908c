//! Models without thinking. They reject a request for thoughts, which the adapter makes by default.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use everturn_wire::{Category, Failure, Value};
use serde_json::json;

/// Maximum number of remembered models. A forgotten one fails once more.
const MOST: usize = 1000;

/// Non-thinking models seen by this process.
#[derive(Debug, Default)]
pub(super) struct NonThinkingModels {
    models: Mutex<HashSet<String>>,
}

impl NonThinkingModels {
    /// Removes the request for thoughts for such a model, unless an effort is set. Returns whether the request still
    /// has it.
    pub(super) fn leave_out(&self, model: &str, body: &mut Value) -> bool {
        let Some(Value::Object(generation)) = body.get_mut("generationConfig") else { return false };
        if generation.get("thinkingConfig") != Some(&json!({ "includeThoughts": true })) {
            return false;
        }
        let is_met = self.models.lock().unwrap_or_else(PoisonError::into_inner).contains(model);
        if is_met {
            generation.shift_remove("thinkingConfig");
        }
        !is_met
    }

    /// Learns from the failure of a request for thoughts. Marks the failure as retryable, because the next request will
    /// not have it.
    pub(super) fn learn(&self, model: &str, failure: &mut Failure) {
        let is_refused = failure.category == Category::InvalidRequest && !failure.retryable;
        if !is_refused || !failure.message.to_lowercase().contains("thinking") {
            return;
        }
        failure.retryable = true;
        let mut models = self.models.lock().unwrap_or_else(PoisonError::into_inner);
        if models.len() == MOST {
            models.clear();
        }
        models.insert(model.to_owned());
    }
}
