//! Text in columns. Postgres cannot store the character NUL in text, so it is escaped, and so is the backslash.

use std::borrow::Cow;

/// Escapes a text. Most are stored as they are.
pub(crate) fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(['\\', '\0']) {
        return text.into();
    }
    text.replace('\\', "\\\\").replace('\0', "\\0").into()
}

/// Returns the text that [`escape`] was given.
pub(crate) fn unescape(stored: &str) -> String {
    let (mut text, mut rest) = (String::with_capacity(stored.len()), stored);
    while let Some((before, after)) = rest.split_once('\\') {
        text.push_str(before);
        let mut after = after.chars();
        text.push(if after.next() == Some('0') { '\0' } else { '\\' });
        rest = after.as_str();
    }
    text.push_str(rest);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        for (text, stored) in [
            ("", ""),
            ("a \"b\"\n", "a \"b\"\n"),
            ("\0", "\\0"),
            ("C:\\0\\\0x", "C:\\\\0\\\\\\0x"),
            ("é\\", "é\\\\"),
        ] {
            assert_eq!(escape(text), stored);
            assert_eq!(unescape(stored), text);
        }
    }
}
