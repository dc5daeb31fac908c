//! Compaction of a history, as reported in events.

use serde::{Deserialize, Serialize};

/// Why a history is summarized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CompactionCause {
    /// The provider rejected it as too long for the model.
    Overflow,
    /// It would barely fit the model's context window.
    Ahead,
    /// A person asked for it. The turn ends with the summary.
    Requested,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// How a compaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CompactionOutcome {
    /// A summary replaces the older history.
    Summarized,
    /// No summary could be made.
    Failed,
    /// The turn ended first.
    Cancelled,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
