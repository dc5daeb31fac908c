//! What the API wants back with a part, besides what everybody can read of it.

use everturn_wire::Value;
use serde::{Deserialize, Serialize};

/// Kept as an echo's data, in the API's own names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EchoData {
    /// Whether the part was a thought.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<String>,
    /// The API's id of a call. It leaves it out at times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

impl EchoData {
    /// Nothing, where the data is none of ours.
    pub(super) fn read(data: &Value) -> Self {
        serde_json::from_value(data.clone()).unwrap_or_default()
    }
}
