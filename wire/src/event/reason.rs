//! The reason why a turn ended, in one word.

use alloc::string::String;

use serde::{Deserialize, Serialize};

/// The reason why a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
#[non_exhaustive]
pub enum DoneReason {
    /// The model completed its answer.
    Stop,
    /// The model called tools and was not called again.
    ToolCalls,
    /// The model reached its output limit.
    Length,
    /// The provider's content filter stopped the answer.
    ContentFilter,
    /// The configured number of steps was reached.
    MaxSteps,
    /// A failure ended the turn.
    Error,
    /// A user or a program stopped the turn.
    Aborted,
    /// Another reason: the provider's own word, or one from a newer version.
    Other(String),
}

impl DoneReason {
    /// Returns the value on the wire.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Stop => "stop",
            Self::ToolCalls => "tool-calls",
            Self::Length => "length",
            Self::ContentFilter => "content-filter",
            Self::MaxSteps => "max-steps",
            Self::Error => "error",
            Self::Aborted => "aborted",
            Self::Other(word) => word,
        }
    }
}

impl From<String> for DoneReason {
    fn from(word: String) -> Self {
        match word.as_str() {
            "stop" => Self::Stop,
            "tool-calls" => Self::ToolCalls,
            "length" => Self::Length,
            "content-filter" => Self::ContentFilter,
            "max-steps" => Self::MaxSteps,
            "error" => Self::Error,
            "aborted" => Self::Aborted,
            _ => Self::Other(word),
        }
    }
}

impl From<DoneReason> for String {
    fn from(reason: DoneReason) -> Self {
        match reason {
            DoneReason::Other(word) => word,
            known => known.as_str().into(),
        }
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for DoneReason {
    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        "DoneReason".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Why the model finished: a known word or the provider's own.",
            "anyOf": [
                { "enum": ["stop", "tool-calls", "length", "content-filter", "max-steps", "error", "aborted"] },
                { "type": "string" }
            ]
        })
    }
}
