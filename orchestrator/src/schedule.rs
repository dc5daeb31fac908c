//! A turn's policy as it is saved with the turn.

use everturn_pacing::{RetryPolicy, SavedPolicy};
use everturn_wire::Value;
use serde::Deserialize as _;

/// Returns a policy as it is saved; `None` if its schedule is an embedder's own.
pub(crate) fn saved(policy: &RetryPolicy) -> Option<Value> {
    serde_json::to_value(policy.saved()?).ok()
}

/// Restores a saved policy.
///
/// # Errors
/// Returns its name if this program does not know it, or does not accept its parameters.
pub(crate) fn restore(saved: &Value) -> Result<RetryPolicy, String> {
    match SavedPolicy::deserialize(saved) {
        Ok(policy) => Ok(policy.into()),
        Err(error) => Err(format!("{} ({error})", named(saved))),
    }
}

/// Returns the name of the innermost schedule, for people.
fn named(saved: &Value) -> String {
    match &saved["schedule"] {
        Value::Null => saved["name"].as_str().map_or_else(|| saved.to_string(), str::to_owned),
        inner => named(inner),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_policy_is_the_same_in_the_next_process() {
        let policy = RetryPolicy::default().on_route();
        assert_eq!(restore(&saved(&policy).unwrap()), Ok(policy));
        assert_eq!(saved(&RetryPolicy::own(everturn_kernel::NoRetry)), None);
    }

    #[test]
    fn what_is_not_known_is_named() {
        let of = |saved| restore(&saved).unwrap_err();
        assert!(of(json!({ "name": "lunar" })).starts_with("lunar ("));
        let inner = json!({ "name": "walls", "schedule": { "name": "lunar" } });
        assert!(of(inner).starts_with("lunar ("));
        assert!(of(json!({ "name": "exponential", "baseMs": "soon" })).contains("soon"));
        assert!(of(json!(7)).starts_with("7 ("));
    }
}
