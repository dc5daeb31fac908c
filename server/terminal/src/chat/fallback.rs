//! `/settings fallback`: the models to ask when a model fails.

use everturn_wire::{Change, FallbackChains, RetryPatch, RetrySettingsState};

/// The word after `/settings` or `/settings all`.
pub(super) const FALLBACK: &str = "fallback";

/// Given instead of models to remove the chain.
const NONE: &str = "none";

/// A chain as set by a line.
#[derive(Debug, PartialEq)]
pub(super) struct Chain {
    of: String,
    /// Empty: the chain is removed.
    models: Vec<String>,
}

impl Chain {
    /// Parses the words after `fallback`: a model, then its fallbacks or `none`.
    pub(super) fn of_words(words: &[&str]) -> Option<Self> {
        let (of, models) = words.split_first()?;
        let models = match models {
            [] => return None,
            [NONE] => Vec::new(),
            models => models.iter().flat_map(|word| word.split(',')).collect(),
        };
        let models = models.into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Some(Self { of: (*of).to_owned(), models })
    }

    /// The change of a scope with these settings. Its chains replace the inherited ones, so those are copied. When the
    /// last chain is removed, the global scope is reset; a conversation is set to have none.
    pub(super) fn change(&self, state: &RetrySettingsState) -> RetryPatch {
        let mut chains = state.effective.fallback_chains.clone().unwrap_or_default();
        if self.models.is_empty() {
            chains.0.remove(&self.of);
        } else {
            chains.0.insert(self.of.clone(), self.models.clone());
        }
        let inherits = chains.0.is_empty() && state.conversation_id.is_none();
        let change = if inherits { Change::Inherit } else { Change::Set(chains) };
        RetryPatch { fallback_chains: Some(change), ..RetryPatch::default() }
    }
}

/// Describes the chains, one line each.
pub(super) fn told(chains: &FallbackChains) -> impl Iterator<Item = String> {
    let chains = chains.0.iter().filter(|(_, models)| !models.is_empty());
    chains.map(|(of, models)| format!("{of} -> {}", models.join(", ")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn changed(words: &[&str], conversation: Option<&str>, effective: &Value) -> Value {
        let state = RetrySettingsState {
            conversation_id: conversation.map(Into::into),
            set: Box::default(),
            effective: Box::new(serde_json::from_value(json!({ "fallbackChains": effective })).unwrap()),
        };
        serde_json::to_value(Chain::of_words(words).unwrap().change(&state)).unwrap()["fallbackChains"]
            .clone()
    }

    #[test]
    fn other_chains_are_kept() {
        let known = json!({ "a/m": ["b/m"], "c/m": ["a/m"] });
        assert_eq!(
            changed(&["a/m", "c/m,", "b/m"], None, &known),
            json!({ "a/m": ["c/m", "b/m"], "c/m": ["a/m"] })
        );
        assert_eq!(changed(&["a/m", "none"], Some("c1"), &known), json!({ "c/m": ["a/m"] }));
    }

    #[test]
    fn the_last_chain_leaves_nothing_or_none() {
        let known = json!({ "a/m": ["b/m"] });
        assert_eq!(changed(&["a/m", "none"], None, &known), Value::Null);
        assert_eq!(changed(&["a/m", "none"], Some("c1"), &known), json!({}));
    }

    #[test]
    fn a_chain_has_a_model_and_something_in_its_place() {
        assert_eq!(Chain::of_words(&[]), None);
        assert_eq!(Chain::of_words(&["a/m"]), None);
    }
}
