//! Tool policies.

use serde::{Deserialize, Serialize};

/// What happens to a call of a tool before it runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Policy {
    /// It runs.
    #[default]
    Allow,
    /// A person is asked.
    Ask,
    /// A reviewer decides.
    Review,
    /// It does not run, and the model is told so.
    Deny,
}
