//! Finds the message that a client wants answered again or edited.

use everturn_wire::TurnMetrics;

/// A position in a conversation as the client knows it: relative to its answers, whose ids are turn ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// The answer to replace.
    pub(super) answer: Option<String>,
    /// The last answer before the message, and the number of user messages since then, including it.
    pub(super) after: Option<(String, usize)>,
    /// The number of user messages from the start, including it; absent if the client sent only the last messages.
    pub(super) nth: Option<usize>,
}

impl Place {
    /// Creates the position of the last message of a whole history: the last answer before it with the number of user
    /// messages since then. Only without an answer, their number from the start counts.
    pub(crate) fn at(after: Option<(String, usize)>, nth: usize) -> Self {
        Self { nth: after.is_none().then_some(nth), answer: None, after }
    }

    /// Returns the `seq` of the message. `turns`: the sealed turns. `messages`: the `seq` of each user message that is
    /// not superseded, ascending. `None` if the conversation does not have the message.
    pub fn find(&self, turns: &[TurnMetrics], messages: &[u64]) -> Option<u64> {
        let turn = |id: &str| turns.iter().find(|turn| turn.turn_id.as_str() == id);
        if let Some(first) = self.answer.as_deref().and_then(turn).and_then(|turn| turn.first_seq) {
            return messages.iter().rev().find(|seq| **seq <= first).copied();
        }
        if let Some((id, count)) = &self.after
            && let Some(last) = turn(id).and_then(|turn| turn.last_seq)
        {
            return messages.iter().filter(|seq| **seq > last).nth(count.checked_sub(1)?).copied();
        }
        match self.nth {
            Some(nth) => messages.get(nth.checked_sub(1)?).copied(),
            None if self.after.is_some() => None,
            None => messages.last().copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turns() -> Vec<TurnMetrics> {
        let turn = |id: &str, first, last| TurnMetrics {
            first_seq: Some(first),
            last_seq: Some(last),
            ..TurnMetrics::new(id.into())
        };
        // The second one failed, and the third one repeated it.
        vec![turn("a", 1, 2), turn("b", 3, 4), turn("c", 5, 5), turn("d", 6, 9)]
    }

    #[test]
    fn a_message_is_found_by_the_answers_around_it() {
        let messages = [1, 3, 6, 8];
        let find = |answer: Option<&str>, after: Option<(&str, usize)>, nth| {
            let place = Place {
                answer: answer.map(str::to_owned),
                after: after.map(|(id, count)| (id.to_owned(), count)),
                nth,
            };
            place.find(&turns(), &messages)
        };
        assert_eq!(find(Some("d"), None, None), Some(6));
        assert_eq!(find(Some("c"), None, Some(1)), Some(3), "a repeated turn has no message of its own");
        assert_eq!(find(Some("?"), Some(("a", 1)), None), Some(3));
        assert_eq!(find(None, Some(("c", 2)), None), Some(8));
        assert_eq!(find(None, Some(("d", 1)), None), None, "it never arrived");
        assert_eq!(find(None, Some(("?", 1)), Some(2)), Some(3), "other ids: it is counted");
        assert_eq!(find(None, Some(("?", 1)), None), None, "it follows an answer that is unknown");
        assert_eq!(find(None, None, Some(1)), Some(1));
        assert_eq!(find(None, None, Some(5)), None);
        assert_eq!(find(None, None, None), Some(8));
    }
}
