//! What defines a turn beside its state.

use serde::{Deserialize, Serialize};

/// What defines a turn beside its state: decided when it begins, saved with it, the same after a restart with another
/// configuration. Everything by name: never a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Definition {
    /// The model, as `credential/model`.
    pub model: String,
    /// How hard it is to think, in the provider's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// The turn replaces what the history has from this `seq` on, up to its own first chunk: the model is not sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub supersedes: Option<u64>,
}

impl Definition {
    /// A turn with that model, and nothing else decided.
    pub fn new(model: impl Into<String>) -> Self {
        Self { model: model.into(), ..Self::default() }
    }
}
