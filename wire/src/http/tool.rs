//! `GET /tools`: what models are offered, and where it comes from.

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
    /// The sources of further tools, such as MCP servers, in the order in which they are configured.
    pub sources: Vec<ToolSourceInfo>,
}

/// A tool that turns which begin now are offered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolInfo {
    /// The name that models call it by.
    pub name: String,
    /// Its description for models.
    pub description: String,
    /// JSON Schema of its arguments.
    pub input_schema: Value,
    /// What is done with its calls.
    pub policy: ToolPolicy,
    /// What its source claims about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotations: Option<ToolAnnotations>,
}

/// What is done with the calls of a tool.
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
    /// They do not run, and the model is told so.
    Deny,
    /// A word of a newer version. It is not kept: written again, it is `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// What the source of a tool claims about it. Nobody has checked it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ToolAnnotations {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Whether it changes nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// Whether what it changes may be lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Whether a second call with the same arguments changes nothing more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// Whether it deals with the world outside its source.
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
    /// Why it is down, when it is started again, or what of it cannot be offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// What turns that begin now are offered of it, by name. While it is down: what it offered last.
    pub tools: Vec<ToolInfo>,
}

/// Whether the tools of a source can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ToolSourceStatus {
    /// Not yet: calls wait for it, for a while.
    Starting,
    /// They can.
    Up,
    /// They cannot: calls fail, and the model is told so.
    Down,
    /// A word of a newer version. It is not kept: written again, it is `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
