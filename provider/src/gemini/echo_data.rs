//! The data of Gemini echoes: what must be sent back with a part, besides its visible content.

use everturn_wire::Value;
use serde::{Deserialize, Serialize};

/// Stored as the data of an echo, with the API's own field names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct EchoData {
    /// Whether the part was a thought.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) thought: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) thought_signature: Option<String>,
    /// The API's id of a call. Sometimes omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<String>,
}

impl EchoData {
    /// Parses the data; empty if it has another form.
    pub(super) fn read(data: &Value) -> Self {
        serde_json::from_value(data.clone()).unwrap_or_default()
    }
}
