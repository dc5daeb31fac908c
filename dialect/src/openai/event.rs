//! Events, as translators take them.

use everturn_wire::EventBody;

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
    /// Whether the turn is over with this.
    pub(super) fn is_seal(&self) -> bool {
        matches!(self, Self::Other(EventBody::TurnSealed))
    }
}

/// What stands between the texts of two steps: a model writes each without a thought of the other.
pub(super) const STEP_GAP: &str = r"\n\n";

/// A text as JSON writes it, without the quotes.
pub(super) fn escaped(text: &str) -> String {
    // A string can always be written.
    let quoted = serde_json::to_string(text).unwrap_or_else(|_| "\"\"".to_owned());
    quoted[1..quoted.len() - 1].to_owned()
}
