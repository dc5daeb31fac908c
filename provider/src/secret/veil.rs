//! Takes what is known of secrets out of texts, however an endpoint writes them.
//!
//! Any eight characters of a secret that stand together are hidden, so that one that was cut short is found too. They are
//! looked for in the text as it stands, percent-encoded, with JSON's escapes, with both, and in base64. A secret of four to
//! seven characters is hidden only whole, and only if it is not letters alone.

mod spelling;

use std::{collections::HashSet, ops::Range};

use base64::{
    Engine as _,
    engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD},
};

use spelling::{Letter, Spelling, letters};

/// What stands in a secret's place.
const MARK: &str = "[redacted]";

/// The number of bytes of a secret that are searched for together. A shorter secret is hidden only as a whole word, since
/// parts of it would blank out plain words.
const WINDOW: usize = 8;

/// The shortest secret that is hidden at all, in bytes.
const SHORTEST: usize = 4;

/// All that is secret about one endpoint.
#[derive(Clone, Default)]
pub(crate) struct Veil {
    /// Every run of [`WINDOW`] bytes of the secrets, and of their base64.
    windows: HashSet<[u8; WINDOW]>,
    /// Secrets that are hidden only where they stand alone.
    words: Vec<String>,
}

impl Veil {
    /// Hides a credential and every part of it.
    pub(crate) fn add(&mut self, secret: &str) {
        self.add_text(secret);
        // `Bearer TOKEN`, `Basic BASE64`, `session=VALUE; path=/`.
        for part in secret.split(|c: char| c.is_whitespace() || matches!(c, ';' | ',' | '=' | '"')) {
            if part.len() != secret.len() {
                self.add_text(part);
            }
            self.add_decoded(part);
        }
        self.add_decoded(secret);
    }

    /// Hides a text where all of it stands, as no part of it is a secret by itself.
    pub(crate) fn add_name(&mut self, name: &str) {
        if name.len() >= WINDOW {
            self.words.push(name.to_owned());
        }
    }

    /// What a credential in base64 says: `user:password`.
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

    fn add_text(&mut self, secret: &str) {
        let secret = secret.trim();
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
        // A space at its end tells less than a character: seven letters may be a word.
        for window in windows.filter(|window| window[0] != b' ' && window[WINDOW - 1] != b' ') {
            self.windows.insert(window);
            // Forms write a space so.
            self.windows.insert(window.map(|byte| if byte == b' ' { b'+' } else { byte }));
        }
    }

    /// The base64 of a secret with anything before and after it: of the three ways in which it may fall on the groups of
    /// three, the digits that hold nothing else.
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

    /// Takes all of it out of a text.
    pub(crate) fn hide_in(&self, text: &mut String) {
        let mut hidden: Vec<Range<usize>> = Vec::new();
        let spellings = Spelling::ALL.iter().filter(|spelling| spelling.may_be_in(text));
        for spelling in spellings.take_while(|_| !self.windows.is_empty()) {
            self.find(&letters(text, *spelling), *spelling, &mut hidden);
        }
        for word in &self.words {
            hidden.extend(alone(text, word));
        }
        if hidden.is_empty() {
            return;
        }
        hidden.sort_unstable_by_key(|range| range.start);
        let mut clean = String::with_capacity(text.len());
        let mut end = 0;
        for range in hidden {
            let (from, to) = (text.floor_char_boundary(range.start), text.ceil_char_boundary(range.end));
            if from > end || clean.is_empty() {
                clean.push_str(&text[end..from.max(end)]);
                clean.push_str(MARK);
            }
            end = end.max(to);
        }
        clean.push_str(&text[end..]);
        *text = clean;
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

/// Where a word stands with nothing of a word beside it.
fn alone(text: &str, word: &str) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric();
    let found = text
        .match_indices(word)
        .filter(|(at, _)| !text[..*at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part));
    found.map(|(at, _)| at..at + word.len()).collect()
}

#[cfg(test)]
mod tests;
