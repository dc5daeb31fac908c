//! Targets: where attempts go.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// Where an attempt goes: a credential of a provider and one of its models, by name. Never holds a secret.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Target {
    /// How people and clients name it. Unique in its route.
    pub name: String,
    /// The credential that it uses: what a usage limit is about.
    pub credential: String,
    /// The model that it asks: what an overload is about. Two targets with the same credential and model make the same
    /// request.
    pub model: String,
}

impl Target {
    /// A target; its name is `credential/model`.
    pub fn new(credential: impl Into<String>, model: impl Into<String>) -> Self {
        let (credential, model) = (credential.into(), model.into());
        Self { name: alloc::format!("{credential}/{model}"), credential, model }
    }

    /// Whether asking it is the same request as asking the other one.
    pub fn is_same_request(&self, other: &Self) -> bool {
        (&self.credential, &self.model) == (&other.credential, &other.model)
    }
}
