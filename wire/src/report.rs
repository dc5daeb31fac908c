//! Final reports: what a turn was asked to end with.

use alloc::string::String;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A report that a turn must end with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RequiredReport {
    /// JSON Schema of the report: an object.
    pub schema: Value,
    /// How many replies may come to nothing before the turn ends without a report, 1 to 100; 3 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

impl RequiredReport {
    /// The largest schema, in bytes as JSON: it is sent with each request, and takes many times that in memory.
    pub const MAX_SCHEMA: usize = 64 << 10;
    /// Most attempts that can be asked for.
    pub const MAX_ATTEMPTS: u32 = 100;

    /// A report of this schema, with the usual number of attempts.
    pub fn new(schema: Value) -> Self {
        Self { schema, max_attempts: None }
    }
}

/// The final report of a turn that had to give one: the model's own, or one that says why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FinalReport {
    /// Whether the model gave a report that fits its schema.
    pub success: bool,
    /// The model's report: any JSON that fits the schema. Absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Value>,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How far the turn came: its steps and attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// Why the model is asked for its final report and offered nothing else.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ForcedBy {
    /// The turn has no further steps.
    MaxSteps,
    /// The history does not fit the model's context.
    Overflow,
    /// The schedule has no further retry.
    Exhausted,
    /// A word of a newer version. It is not kept: written again, it is `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
