//! A set of word beginnings, used to skip most comparisons cheaply.

/// The first two letters of words, by their low five bits, so that case does not matter. Collisions are possible.
#[derive(Clone, Copy, Default)]
pub(crate) struct Pairs([u64; 16]);

impl Pairs {
    /// Creates the set of the beginnings of these words.
    pub(crate) const fn of(lists: &[&[&str]]) -> Self {
        let mut pairs = Self([0; 16]);
        let mut list = 0;
        while list < lists.len() {
            let mut word = 0;
            while word < lists[list].len() {
                pairs.insert(lists[list][word].as_bytes());
                word += 1;
            }
            list += 1;
        }
        pairs
    }

    pub(crate) const fn insert(&mut self, word: &[u8]) {
        let pair = pair(word);
        self.0[pair / 64] |= 1 << (pair % 64);
    }

    /// Whether a member may begin like this word.
    pub(crate) const fn may_have(&self, word: &[u8]) -> bool {
        let pair = pair(word);
        self.0[pair / 64] & (1 << (pair % 64)) != 0
    }
}

const fn pair(word: &[u8]) -> usize {
    let first = if word.is_empty() { 0 } else { word[0] & 31 };
    let second = if word.len() < 2 { 0 } else { word[1] & 31 };
    first as usize * 32 + second as usize
}
