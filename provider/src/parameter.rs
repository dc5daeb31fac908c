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

/// Merges additional fields into objects at any depth: a caller's field remains beside an additional one. An object with a `type` is
/// one thing, such as a schema, and replaces another one.
pub(crate) fn merge(fields: &mut Map<String, Value>, extra: &Map<String, Value>) {
    for (name, value) in extra {
        match (fields.get_mut(name), value) {
            (Some(Value::Object(inner)), Value::Object(extra)) if !extra.contains_key("type") => {
                merge(inner, extra);
            }
            _ => drop(fields.insert(name.clone(), value.clone())),
        }
    }
}

/// Returns the stop sequences, if any.
pub(crate) fn stop(parameters: &Parameters) -> Option<Value> {
    (!parameters.stop.is_empty()).then(|| parameters.stop.iter().cloned().map(Value::from).collect())
}
