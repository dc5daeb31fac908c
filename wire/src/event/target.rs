//! Targets, as reported in events.

use serde::{Deserialize, Serialize};

/// The purpose of a call to a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TargetRole {
    /// Answering the user.
    Main,
    /// Reviewing tool calls.
    Reviewer,
    /// Summarizing a long history.
    Compactor,
    /// A value from a newer server.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
