//! `GET /tools`: the tools offered to models, and their sources.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Response of `GET /tools`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Tools {
    /// The server's own tools, by name.
    pub tools: Vec<ToolInfo>,
    /// The sources of further tools, such as MCP servers, in configuration order.
    pub sources: Vec<ToolSourceInfo>,
}

/// A tool offered to new turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// The name that models use.
    pub name: String,
    /// Its description for models.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// How calls of the tool are treated.
    pub policy: ToolPolicy,
    /// Claims of the source about the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
}

/// How calls of a tool are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolPolicy {
    /// They run.
    #[default]
    Allow,
    /// A person is asked.
    Ask,
    /// A model reviews them.
    Review,
    /// They do not run, and the model gets an error.
    Deny,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// Claims of a tool's source about the tool. Not verified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A title for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The tool changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Its changes may destroy data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// A second call with the same arguments has no further effect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It interacts with the world outside its source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

/// A source of tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolSourceInfo {
    /// Its name in the configuration.
    pub name: String,
    /// Whether its tools can be called.
    pub status: ToolSourceStatus,
    /// Why it is down, when it will be restarted, or which of its tools cannot be offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The login that it asks for or has. Absent = it asks for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<ToolSourceLogin>,
    /// The tools offered to new turns, by name. While the source is down: those that it last offered.
    pub tools: Vec<ToolInfo>,
}

/// The login of a person at a tool source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolSourceLogin {
    /// It asks for one; its tools cannot be called.
    Needed,
    /// There is one.
    Done,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    Unknown,
}

/// Whether the tools of a source can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolSourceStatus {
    /// Not yet: calls wait for it for a limited time.
    Starting,
    /// They can.
    Up,
    /// They cannot: calls fail, and the model gets an error.
    Down,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
