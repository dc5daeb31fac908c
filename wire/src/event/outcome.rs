//! How retries and permissions ended.

use serde::{Deserialize, Serialize};

/// How a series of retries ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum RetryOutcome {
    /// The provider answered.
    Recovered,
    /// The schedule or the budget has no further retry.
    Exhausted,
    /// Someone ended the wait.
    Cancelled,
    /// The next wait would be longer than is allowed.
    TooLong,
    /// The next failure was of a kind that waiting does not cure.
    NotRetryable,
}

/// How a question for permission ended. Only `allowed` lets the tool run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The tool may run.
    Allowed,
    /// The tool may not run.
    Denied,
    /// Nobody could decide: the reviewer broke.
    Failed,
    /// Nobody decided in time.
    TimedOut,
    /// The turn was ended first.
    Cancelled,
}
