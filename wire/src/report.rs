//! Final reports: the report required of a turn, and the report it ended with.

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
    /// Maximum number of failed replies of a step, and of the last step for the report alone, 1 to 100; 3 if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_attempts: Option<u32>,
}

impl RequiredReport {
    /// Maximum size of the schema, in bytes of JSON. It is sent with each request, and takes many times its size in
    /// memory.
    pub const MAX_SCHEMA: usize = 64 << 10;
    /// Maximum value of `max_attempts`.
    pub const MAX_ATTEMPTS: u32 = 100;

    /// Requires a report with this schema, with the default number of attempts.
    pub fn new(schema: Value) -> Self {
        Self { schema, max_attempts: None }
    }
}

/// The final report of a turn that must end with one: the model's report, or the reason why there is none.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FinalReport {
    /// Whether the model gave a report that fits its schema.
    pub success: bool,
    /// The model's report: any JSON that fits the schema. Absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Value>,
    /// The reason why there is no report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How far the turn got: its steps and attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
}

/// Why only the final report is on offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ForcedBy {
    /// The turn has no steps left.
    MaxSteps,
    /// The history does not fit the model's context.
    Overflow,
    /// No retries are left, of failed calls or of failed replies.
    Exhausted,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
