//! What callers used.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

/// Response of `GET /usage`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// The first day, such as `2026-11-25`, in UTC.
    pub from: String,
    /// The last day.
    pub to: String,
    /// What the rows are for.
    pub by: Vec<UsageKey>,
    /// A row for each combination that was used, in order of `by`.
    pub rows: Vec<UsageRow>,
    /// The sum of all rows.
    pub total: UsageRow,
}

/// What a row of a [`UsageReport`] can be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum UsageKey {
    /// A caller.
    Caller,
    /// A model, whatever the credential.
    Model,
    /// A target: a model with a credential.
    Target,
    /// A day, in UTC.
    Day,
}

impl UsageKey {
    /// All keys.
    pub const ALL: [Self; 4] = [Self::Caller, Self::Model, Self::Target, Self::Day];

    /// Returns the value on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Caller => "caller",
            Self::Model => "model",
            Self::Target => "target",
            Self::Day => "day",
        }
    }
}

/// What was used, and what came of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UsageRow {
    /// The caller, in a row for one; absent = the administrator. `(other)`: callers beyond the number that is kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The model, in a row for one. `(other)`: models beyond the number that is kept apart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The target, as `provider/model`, in a row for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<String>,
    /// The day, in a row for one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day: Option<String>,
    /// Turns and passed-through calls that ended. They count on the day, and for the target, with which they ended.
    pub turns: u64,
    /// Those of `turns` that met at least one failure and were answered all the same.
    pub survived: u64,
    /// Those of `turns` that a failure ended.
    pub failed: u64,
    /// How long `turns` waited, in milliseconds.
    pub waited_ms: u64,
    /// Requests made to providers.
    pub requests: u64,
    /// Those of `requests` that were refused, or failed otherwise.
    pub refusals: u64,
    /// Tokens of requests, including those read from a cache.
    pub input_tokens: u64,
    /// Tokens of answers, including reasoning.
    pub output_tokens: u64,
    /// Tokens of requests that were read from a cache.
    pub cache_read_tokens: u64,
    /// Tokens of requests that were written to a cache.
    pub cache_write_tokens: u64,
    /// Tokens of answers that were reasoning, as far as providers say so.
    pub reasoning_tokens: u64,
    /// What the tokens cost by the prices that are configured now; absent if none of their models has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// Targets whose tokens are not in `cost`, because their model has no price; at most 20. Absent = none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<Vec<String>>,
}
