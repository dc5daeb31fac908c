//! Events, as translators take them.

use std::borrow::Cow;

use everturn_wire::EventBody;
use serde_json::{Map, Value};

/// One event of a turn.
#[derive(Clone, Debug)]
pub enum Event<'a> {
    /// A piece of visible text, as JSON writes it between the quotes: it is passed on as it is.
    Text(&'a str),
    /// A piece of reasoning, likewise.
    Reasoning(&'a str),
    /// Any other event.
    Other(&'a EventBody),
}

impl Event<'_> {
    /// A piece of text, as JSON writes it between the quotes, and whether it is reasoning.
    pub(crate) fn delta(&self) -> Option<(Cow<'_, str>, bool)> {
        match self {
            Self::Text(json) => Some((Cow::Borrowed(json), false)),
            Self::Reasoning(json) => Some((Cow::Borrowed(json), true)),
            Self::Other(EventBody::TextDelta { delta }) => Some((escaped(delta).into(), false)),
            Self::Other(EventBody::ReasoningDelta { delta }) => Some((escaped(delta).into(), true)),
            Self::Other(_) => None,
        }
    }

    /// Whether the turn is over with this.
    pub(crate) fn is_seal(&self) -> bool {
        matches!(self, Self::Other(EventBody::TurnSealed))
    }
}

/// What is shown between an answer that broke off and the same answer from its start.
pub(crate) const STARTS_AGAIN: &str = "\n\n[The answer broke off here. It starts again:]\n\n";

/// What stands between the texts of two steps: a model writes each without a thought of the other.
pub(crate) const STEP_GAP: &str = r"\n\n";

/// A text as JSON writes it, without the quotes.
pub(crate) fn escaped(text: &str) -> String {
    // A string can always be written.
    let quoted = serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned());
    quoted[1..quoted.len() - 1].to_owned()
}

/// The type of an event, and its other fields, for a client that has no word of its own for it.
pub(crate) fn named(event: &EventBody) -> Option<(String, Map<String, Value>)> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(event) else { return None };
    let Some(Value::String(name)) = fields.remove("type") else { return None };
    Some((name, fields))
}
