//! Outcomes of retries.

use serde::{Deserialize, Serialize};

/// The outcome of a series of retries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum RetryOutcome {
    /// The provider answered.
    Recovered,
    /// The schedule has no further retry.
    Exhausted,
    /// A user cancelled the wait.
    Cancelled,
    /// The next wait would exceed the budget.
    TooLong,
    /// The next failure was not retryable.
    NotRetryable,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
