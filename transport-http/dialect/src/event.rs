//! Events as translators receive them.

use std::borrow::Cow;

use everturn_wire::EventBody;
use serde_json::{Map, Value};

/// One event of a turn.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A piece of visible text, as in JSON without the quotes, because it is passed on unchanged.
    Text(&'a str),
    /// A piece of reasoning, in the same form.
    Reasoning(&'a str),
    /// Any other event.
    Other(&'a EventBody),
}

impl Event<'_> {
    /// Returns the piece of text, as in JSON without the quotes, and whether it is reasoning.
    pub(crate) fn delta(&self) -> Option<(Cow<'_, str>, bool)> {
        match self {
            Self::Text(json) => Some((Cow::Borrowed(json), false)),
            Self::Reasoning(json) => Some((Cow::Borrowed(json), true)),
            Self::Other(EventBody::TextDelta { delta }) => Some((escaped(delta).into(), false)),
            Self::Other(EventBody::ReasoningDelta { delta }) => Some((escaped(delta).into(), true)),
            Self::Other(_) => None,
        }
    }

    /// Whether the turn is over with this event.
    pub(crate) fn is_seal(&self) -> bool {
        matches!(self, Self::Other(EventBody::TurnSealed))
    }
}

/// Shown between a truncated answer and its repetition from the start.
pub(crate) const STARTS_AGAIN: &str = "\n\n[The answer broke off here. It starts again:]\n\n";

/// Separates the texts of two steps, because models do not.
pub(crate) const STEP_GAP: &str = r"\n\n";

/// Returns a text as in JSON, without the quotes.
pub(crate) fn escaped(text: &str) -> String {
    // Serializing a string cannot fail.
    let quoted = serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned());
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns the type of an event and its other fields, for a protocol without an equivalent.
pub(crate) fn named(event: &EventBody) -> Option<(String, Map<String, Value>)> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(event) else { return None };
    let Some(Value::String(name)) = fields.shift_remove("type") else { return None };
    Some((name, fields))
}
