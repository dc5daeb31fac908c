//! What a provider reports of an answer, besides the answer.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Number;

/// What a provider reports of an answer, as it says it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    /// Its name of the model that answered, which may be more precise than the one that was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The configuration that the model ran with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system_fingerprint: Option<String>,
    /// The tier that served the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_tier: Option<String>,
    /// What the call cost, in the provider's own unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Number>,
}
