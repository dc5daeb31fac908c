//! Joins surrogate pairs that a provider split over two events.
//!
//! JSON can escape a character beyond U+FFFF as two halves. Servers that split their text between these halves send events
//! that no JSON parser accepts.

use std::{borrow::Cow, mem};

use memchr::memchr;

/// Length of an escaped half: `\ud83d`.
const LENGTH: usize = 6;

/// Replaces a half without its other half.
const LOST: &str = "\u{FFFD}";

/// Joins the halves over the events of one stream.
#[derive(Debug, Default)]
pub(crate) struct Surrogates {
    /// The first half, as escaped, with which a string of an earlier event ended.
    first: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Half {
    First,
    Second,
}

impl Surrogates {
    /// Returns an event's JSON with complete pairs only. A first half at the end of a string is moved to the string that begins
    /// with a second half. Other halves are replaced.
    pub(crate) fn join<'e>(&mut self, json: Cow<'e, str>) -> Cow<'e, str> {
        let bytes = json.as_bytes();
        let (mut whole, mut copied, mut at) = (String::new(), 0, 0);
        while let Some(found) = memchr(b'\\', &bytes[at.min(bytes.len())..]) {
            let here = at + found;
            let after = here + LENGTH;
            let Some(half) = half(&bytes[here..]) else {
                at = here + 2;
                continue;
            };
            if half == Half::First && self::half(&bytes[after..]) == Some(Half::Second) {
                at = after + LENGTH;
                continue;
            }
            whole.push_str(&json[copied..here]);
            match half {
                Half::First if bytes.get(after) == Some(&b'"') => {
                    json[here..after].clone_into(&mut self.first);
                }
                Half::Second if !self.first.is_empty() && bytes[..here].ends_with(b"\"") => {
                    whole.extend([&mem::take(&mut self.first), &json[here..after]]);
                }
                Half::First | Half::Second => whole.push_str(LOST),
            }
            (copied, at) = (after, after);
        }
        if copied == 0 {
            return json;
        }
        whole.push_str(&json[copied..]);
        Cow::Owned(whole)
    }
}

/// Returns which half is escaped at the start of a text.
fn half(text: &[u8]) -> Option<Half> {
    let [b'\\', b'u', b'd' | b'D', kind, third, fourth, ..] = text else { return None };
    if !third.is_ascii_hexdigit() || !fourth.is_ascii_hexdigit() {
        return None;
    }
    match kind.to_ascii_lowercase() {
        b'8' | b'9' | b'a' | b'b' => Some(Half::First),
        b'c'..=b'f' => Some(Half::Second),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(events: &[&str]) -> Vec<String> {
        let mut surrogates = Surrogates::default();
        events.iter().map(|json| surrogates.join((*json).into()).into_owned()).collect()
    }

    #[test]
    fn halves_in_two_events_become_one_character() {
        for (events, expected) in [
            (
                &[r#"{"a":"x\ud83d"}"#, r#"{"a":"\ude00y"}"#][..],
                &[r#"{"a":"x"}"#, r#"{"a":"\ud83d\ude00y"}"#][..],
            ),
            (&[r#"["\uD83D"]"#, "[]", r#"["\uDE00"]"#], &[r#"[""]"#, "[]", r#"["\uD83D\uDE00"]"#]),
            (
                &[r#"["\ud83d"]"#, r#"["\ude00\ud83d"]"#, r#"["\ude01"]"#],
                &[r#"[""]"#, r#"["\ud83d\ude00"]"#, r#"["\ud83d\ude01"]"#],
            ),
            // What is complete, or no half, stays.
            (&[r#"["\ud83d\ude00\n\u00e9\\ud83d\\"]"#], &[r#"["\ud83d\ude00\n\u00e9\\ud83d\\"]"#]),
            // What no parser would accept.
            (&[r#"["\ud83dx"]"#, r#"["\ude00"]"#], &["[\"\u{FFFD}x\"]", "[\"\u{FFFD}\"]"]),
            (&[r#"["\ud83d"]"#, r#"["x\ude00"]"#], &[r#"[""]"#, "[\"x\u{FFFD}\"]"]),
            (&[r#"\"#, r"\u", r"\ud8", r"\ud83d"], &[r#"\"#, r"\u", r"\ud8", "\u{FFFD}"]),
        ] {
            assert_eq!(joined(events), expected, "{events:?}");
        }
    }

    #[test]
    fn an_event_without_halves_is_not_copied() {
        let json = r#"{"a":"\n \u00e9 \ud83d\ude00"}"#;
        assert!(matches!(Surrogates::default().join(json.into()), Cow::Borrowed(same) if same == json));
    }
}
