//! Words that many conversations have in common: models, nodes and reasons.

use std::{collections::HashMap, num::NonZeroU32, sync::Arc};

/// A word, as a number. Four bytes, also if it is optional.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word(NonZeroU32);

/// The words that are in use. None is ever forgotten: there are few.
#[derive(Debug, Default)]
pub(super) struct Words {
    words: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, Word>,
}

impl Words {
    /// Returns the number of a word; `None` = there are too many.
    pub(super) fn number(&mut self, word: &str) -> Option<Word> {
        if let Some(known) = self.numbers.get(word) {
            return Some(*known);
        }
        let number = u32::try_from(self.words.len() + 1).ok().and_then(NonZeroU32::new).map(Word)?;
        let shared: Arc<str> = word.into();
        self.words.push(shared.clone());
        self.numbers.insert(shared, number);
        Some(number)
    }

    /// Returns the word with this number.
    pub(super) fn word(&self, Word(number): Word) -> &str {
        let at = usize::try_from(number.get() - 1).ok();
        at.and_then(|at| self.words.get(at)).map(AsRef::as_ref).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_one_number() {
        let mut words = Words::default();
        let numbers = ["a", "b", "a", ""].map(|word| words.number(word).unwrap());
        assert_eq!(numbers.map(|number| words.word(number)), ["a", "b", "a", ""]);
        assert_eq!(numbers[0], numbers[2]);
        assert_eq!(size_of::<Option<Word>>(), 4);
    }
}
