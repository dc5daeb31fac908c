//! Targets, as events name them.

use serde::{Deserialize, Serialize};

/// What a target is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TargetRole {
    /// To answer the person.
    Main,
    /// To review tool calls.
    Reviewer,
    /// To summarize a long history.
    Compactor,
    /// A word that only a newer server sends.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
