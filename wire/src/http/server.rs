//! What a server says of itself: models, targets, nodes, health.

use alloc::{collections::BTreeMap, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::Category;

/// Response of `GET /models`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Models {
    /// The models, each as `provider/model`; the first is the default.
    pub models: Vec<String>,
    /// Details of the models, by the same names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_info: Option<BTreeMap<String, ModelInfo>>,
}

/// Details of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    /// Maximum number of tokens in a request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Maximum number of tokens in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u64>,
}

/// Response of `GET /cluster`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterState {
    /// The id of this server; absent if it shares its conversations with no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// All servers that share the conversations and are alive, this one included, by id.
    pub nodes: Vec<ClusterNode>,
}

/// A server that shares its conversations with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ClusterNode {
    /// Its id, a new one at each start.
    pub id: String,
    /// Its name.
    pub name: String,
    /// The version of its program.
    pub version: String,
    /// When it started, in epoch milliseconds.
    pub started_at: u64,
    /// The number of unfinished turns that it drives or is going to wake, as of a few seconds ago.
    pub turns: u64,
    /// The models and routes that it offers, at most 100. It continues turns of other servers that use one of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The MCP servers that it is configured with, at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tool_sources: Vec<String>,
}

/// Response of `GET /targets`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Targets {
    /// All targets, in the order in which they are configured.
    pub targets: Vec<TargetState>,
}

/// Whether a target can be asked at present.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TargetState {
    /// The target, as `provider/model`.
    pub target: String,
    /// When it can be asked again, in epoch milliseconds; absent if it can be asked now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
    /// The category of the last relevant failure; absent if it can be asked now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
}

/// Response of `GET /health`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Health {
    /// Always true: a server that is not healthy does not answer.
    pub ok: bool,
}
