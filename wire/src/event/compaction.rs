//! Compaction of a history, as events name it.

use serde::{Deserialize, Serialize};

/// Why a history is summarized.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CompactionCause {
    /// The provider refused it as too long for the model.
    Overflow,
    /// It would hardly fit the model's context window.
    Ahead,
    /// A word of a newer version. It is not kept: written again, it is `unknown`.
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
    /// A summary takes the place of the older history.
    Summarized,
    /// No summary could be made.
    Failed,
    /// The turn ended first.
    Cancelled,
    /// A word of a newer version. It is not kept: written again, it is `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
