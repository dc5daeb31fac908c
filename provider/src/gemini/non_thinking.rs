//! Models that do not think: they refuse a request for their thoughts, which is made unasked.

use std::{
    collections::HashSet,
    sync::{Mutex, PoisonError},
};

use everturn_wire::{Failure, Value};
use serde_json::json;

/// How many are remembered. One that is forgotten refuses once more.
const MOST: usize = 1000;

/// Those that were met in this process.
#[derive(Debug, Default)]
pub(super) struct NonThinkingModels {
    models: Mutex<HashSet<String>>,
}

impl NonThinkingModels {
    /// Takes the wish for thoughts out of the request to such a model, unless it goes with an effort. Says whether it is
    /// left in it.
    pub(super) fn leave_out(&self, model: &str, body: &mut Value) -> bool {
        let Some(Value::Object(generation)) = body.get_mut("generationConfig") else { return false };
        if generation.get("thinkingConfig") != Some(&json!({ "includeThoughts": true })) {
            return false;
        }
        let is_met = self.models.lock().unwrap_or_else(PoisonError::into_inner).contains(model);
        if is_met {
            generation.remove("thinkingConfig");
        }
        !is_met
    }

    /// Learns from the failure of a request with that wish. It is worth another attempt, which will be without.
    pub(super) fn learn(&self, model: &str, failure: &mut Failure) {
        if failure.retryable || !failure.message.to_lowercase().contains("thinking") {
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
