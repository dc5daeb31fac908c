//! Sanitizes text of models, tools and providers for a terminal.

/// Joins letters of some scripts and parts of an emoji. Elsewhere it only hides differences.
const JOINERS: [char; 2] = ['\u{200c}', '\u{200d}'];

/// Sanitizes streamed text: removes control sequences, and makes invisible characters visible.
#[derive(Clone, Copy, Debug, Default)]
pub struct Visible {
    /// The last character of the previous piece.
    last: Option<char>,
}

impl Visible {
    /// Sanitizes the next piece: removes control characters except line breaks and tabs, and writes out invisible
    /// characters and bidirectional controls, like `<U+202E>`.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            match c {
                '\n' | '\t' => out.push(c),
                c if c.is_control() => continue,
                c if JOINERS.contains(&c) && self.last.is_some_and(may_be_joined) => out.push(c),
                c if is_hidden(c) => out.push_str(&format!("<U+{:04X}>", u32::from(c))),
                c => out.push(c),
            }
            self.last = Some(c);
        }
        out
    }
}

/// Sanitizes a complete text like [`Visible::push`].
pub fn visible(text: &str) -> String {
    Visible::default().push(text)
}

/// Escapes control characters and invisible ones in JSON, where they occur only in strings, so that nothing is lost and
/// nothing controls the terminal.
pub fn json(json: &str) -> String {
    let mut out = String::with_capacity(json.len());
    for c in json.chars() {
        if (c.is_control() && !matches!(c, '\n' | '\t' | '\r')) || is_hidden(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a joiner is legitimate after this character.
fn may_be_joined(c: char) -> bool {
    !c.is_ascii() && !is_hidden(c)
}

/// Whether a character is invisible or changes the display order of others.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{00ad}' | '\u{034f}' | '\u{061c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}'
        | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_dropped_and_invisible_ones_shown() {
        for (text, expected) in [
            ("a\u{1b}[2J\u{9b}31m\u{7}b\r\nc\td", "a[2J31mb\nc\td"),
            ("user\u{202e}txt.exe", "user<U+202E>txt.exe"),
            ("\u{2066}x\u{2069}", "<U+2066>x<U+2069>"),
            ("pay\u{200b}pal \u{feff}pay\u{200d}pal", "pay<U+200B>pal <U+FEFF>pay<U+200D>pal"),
            ("a\u{e0041}", "a<U+E0041>"),
            ("👩\u{200d}🚀 می\u{200c}خواهم ❤\u{fe0f}", "👩\u{200d}🚀 می\u{200c}خواهم ❤\u{fe0f}"),
        ] {
            assert_eq!(visible(text), expected);
        }
        let mut pieces = Visible::default();
        assert_eq!(["👩", "\u{200d}", "🚀"].map(|piece| pieces.push(piece)).concat(), "👩\u{200d}🚀");
    }

    #[test]
    fn json_keeps_its_meaning() {
        let text = "a\u{9b}31m\u{7f}\u{202e}\u{e0041}é👩\u{200d}🚀";
        let plain = serde_json::to_string(text).unwrap();
        let escaped = json(&plain);
        assert_eq!(escaped, "\"a\\u009b31m\\u007f\\u202e\\udb40\\udc41é👩\\u200d🚀\"");
        assert_eq!(serde_json::from_str::<String>(&escaped).unwrap(), text);
    }
}
