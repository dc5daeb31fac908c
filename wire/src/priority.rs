//! Whose call goes first when calls have to wait.

use serde::{Deserialize, Serialize};

/// Whose call goes first when calls have to wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Priority {
    /// Somebody waits for the answer.
    #[default]
    Interactive,
    /// Nobody waits for it. One in eight admitted calls is a background call, if any waits.
    Background,
}
