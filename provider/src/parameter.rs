//! Helpers to add parameters to requests.

use everturn_wire::{Parameters, Value};
use serde_json::Map;

/// Adds the fields that are set.
pub(crate) fn put<const N: usize>(body: &mut Map<String, Value>, fields: [(&str, Option<Value>); N]) {
    for (name, value) in fields {
        if let Some(value) = value {
            body.insert(name.to_owned(), value);
        }
    }
}

/// Returns the stop sequences, if any.
pub(crate) fn stop(parameters: &Parameters) -> Option<Value> {
    (!parameters.stop.is_empty()).then(|| parameters.stop.iter().cloned().map(Value::from).collect())
}
