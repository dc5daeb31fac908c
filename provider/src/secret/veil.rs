//! Removes known secrets from text, in any common encoding.
//!
//! Any eight consecutive characters of a secret are hidden, so that truncated secrets are found too. The search covers
//! plain text, percent-encoding, JSON escapes, both combined, and base64. A secret of four to seven characters is
//! hidden only as a whole, and only if it is not all letters.

mod spelling;

use std::{collections::HashSet, ops::Range};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};

use super::mask::{BLANK, MARK, Whole};
use spelling::{Letter, Spelling, readings};

/// Length of the runs of a secret that are searched for, in bytes. A shorter secret is hidden only as a whole word,
/// because parts of it would match ordinary words.
const WINDOW: usize = 8;

/// Minimum length of a secret that is hidden, in bytes.
const SHORTEST: usize = 4;

/// The secrets of one endpoint.
#[derive(Clone, Default)]
pub(crate) struct Veil {
    /// Every run of [`WINDOW`] bytes of the secrets, and of their base64 forms.
    windows: HashSet<[u8; WINDOW]>,
    /// Secrets that are hidden only as whole words.
    words: Vec<String>,
    /// Secrets that are replaced in answers.
    whole: Whole,
}

impl Veil {
    /// Adds a credential and all its parts.
    pub(crate) fn add(&mut self, secret: &str) {
        self.add_text(secret);
        // For example `Bearer TOKEN`, `Basic BASE64`, `session=VALUE; path=/`.
        for part in secret.split(|c: char| c.is_whitespace() || matches!(c, ';' | ',' | '=' | '"')) {
            if part.len() != secret.len() {
                self.add_text(part);
            }
            self.add_decoded(part);
        }
        self.add_decoded(secret);
    }

    /// Adds a text that is hidden only as a whole, because its parts are not secret.
    pub(crate) fn add_name(&mut self, name: &str) {
        if name.len() >= WINDOW {
            self.words.push(name.to_owned());
        }
    }

    /// Adds the decoded form of a base64 credential: `user:password`.
    fn add_decoded(&mut self, part: &str) {
        let part = part.trim_end_matches('=');
        let decoded = STANDARD_NO_PAD.decode(part).or_else(|_| URL_SAFE_NO_PAD.decode(part));
        let decoded = decoded.ok().and_then(|bytes| String::from_utf8(bytes).ok());
        let is_text = |text: &String| text.len() >= SHORTEST && !text.contains(char::is_control);
        if let Some(decoded) = decoded.filter(is_text) {
            self.add_text(&decoded);
            if let Some((user, password)) = decoded.split_once(':') {
                self.add_text(user);
                self.add_text(password);
            }
        }
    }

    /// The secrets that are replaced in answers.
    pub(crate) fn whole(&self) -> &Whole {
        &self.whole
    }

    fn add_text(&mut self, secret: &str) {
        let secret = secret.trim();
        self.whole.add(secret);
        match secret.len() {
            0..SHORTEST => {}
            SHORTEST..WINDOW if secret.bytes().all(|byte| byte.is_ascii_alphabetic()) => {}
            SHORTEST..WINDOW => self.words.push(secret.to_owned()),
            _ => {
                self.insert(secret.as_bytes());
                self.add_base64(secret.as_bytes());
            }
        }
    }

    fn insert(&mut self, bytes: &[u8]) {
        let windows = bytes.windows(WINDOW).filter_map(|window| <[u8; WINDOW]>::try_from(window).ok());
        // A window with a space at its end has only seven significant characters, which may be a word.
        for window in windows.filter(|window| window[0] != b' ' && window[WINDOW - 1] != b' ') {
            self.windows.insert(window);
            // Forms encode a space as `+`.
            self.windows.insert(window.map(|byte| if byte == b' ' { b'+' } else { byte }));
        }
    }

    /// Adds the base64 form of a secret embedded in other data: for each of the three alignments, the digits that
    /// depend only on the secret.
    fn add_base64(&mut self, secret: &[u8]) {
        for before in 0..3 {
            let bytes = [&[0; 3][..before], secret].concat();
            let (first, end) = ((before * 8).div_ceil(6), bytes.len() * 8 / 6);
            for engine in [STANDARD, URL_SAFE] {
                let digits = engine.encode(&bytes);
                self.insert(&digits.as_bytes()[first..end]);
            }
        }
    }

    /// Returns a text with all secrets overwritten, so that its length stays; `None` if there are none.
    pub(crate) fn overwritten(&self, text: &str) -> Option<String> {
        let hidden = self.hidden(text);
        let mut bytes = text.as_bytes().to_vec();
        hidden.iter().for_each(|range| bytes[range.clone()].fill(BLANK));
        String::from_utf8(bytes).ok().filter(|_| !hidden.is_empty())
    }

    /// Removes all secrets from a text.
    pub(crate) fn hide_in(&self, text: &mut String) {
        let hidden = self.hidden(text);
        if hidden.is_empty() {
            return;
        }
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for Range { start: from, end: to } in hidden {
            if from > end || clean.is_empty() {
                clean.push_str(&text[end..from.max(end)]);
                clean.push_str(MARK);
            }
            end = end.max(to);
        }
        clean.push_str(&text[end..]);
        *text = clean;
    }

    /// Returns where the secrets of a text are, in order. They may overlap.
    fn hidden(&self, text: &str) -> Vec<Range<usize>> {
        let mut hidden: Vec<Range<usize>> = Vec::new();
        let spellings = Spelling::ALL.iter().filter(|spelling| spelling.may_be_in(text));
        for spelling in spellings.take_while(|_| !self.windows.is_empty()) {
            for letters in readings(text, *spelling) {
                self.find(&letters, *spelling, &mut hidden);
            }
        }
        for word in &self.words {
            hidden.extend(alone(text, word));
        }
        hidden.sort_unstable_by_key(|range| range.start);
        let whole =
            |range: Range<usize>| text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end);
        hidden.into_iter().map(whole).collect()
    }

    fn find(&self, letters: &[Letter], spelling: Spelling, hidden: &mut Vec<Range<usize>>) {
        let mut at = 0;
        while at < letters.len() {
            if let Some((window, end)) = spelling.read::<WINDOW>(&letters[at..])
                && self.windows.contains(&window)
            {
                hidden.push(letters[at].start..end);
            }
            at += 1;
        }
    }
}

/// Finds a word with no word characters next to it.
fn alone(text: &str, word: &str) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric();
    let found = text
        .match_indices(word)
        .filter(|(at, _)| !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part));
    found.map(|(at, _)| at..at + word.len()).collect()
}

#[cfg(test)]
mod tests;
