//! Targets: where attempts go.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Where an attempt goes: a credential and a model, by name. Never holds a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// The name shown to people and clients. Unique within its route.
    pub name: String,
    /// The credential. Usage limits apply to it.
    pub credential: String,
    /// The model. Overloads apply to it. Two targets with the same credential and model make the same request.
    pub model: String,
}

impl Target {
    /// Creates a target named `credential/model`.
    pub fn new(credential: impl Into<String>, model: impl Into<String>) -> Self {
        let (credential, model) = (credential.into(), model.into());
        Self { name: alloc::format!("{credential}/{model}"), credential, model }
    }

    /// Whether asking this target makes the same request as asking the other.
    pub fn is_same_request(&self, other: &Self) -> bool {
        (&self.credential, &self.model) == (&other.credential, &other.model)
    }
}
