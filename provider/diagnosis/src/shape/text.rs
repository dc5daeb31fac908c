//! Text that is an error, or contains one wrapped by a gateway or SDK: finds the structure in it, and reads its words.

use serde_json::{Deserializer, Value};

use super::{Findings, repr};
use crate::code;
use crate::kind::Kind;

/// Maximum number of positions tried as the start of an embedded object.
const TRIES: usize = 4;

/// Maximum number of brackets and spaces before the first key, in bytes.
const LONGEST_OPENING: usize = 32;

/// Finds the first object, or array of objects, with its start and end.
pub(super) fn embedded(text: &str) -> Option<(usize, Value, usize)> {
    if let Some(quoted) = text.starts_with('"').then(|| serde_json::from_str(text).ok()).flatten() {
        return Some((0, Value::String(quoted), text.len()));
    }
    text.match_indices(['{', '[']).filter(|(at, _)| opens(&text[*at..])).take(TRIES).find_map(|(start, _)| {
        let rest = &text[start..];
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        if let Some(Ok(value)) = values.next() {
            return Some((start, value, start + values.byte_offset()));
        }
        let (value, length) = repr::parse(rest)?;
        Some((start, value, start + length))
    })
}

/// Whether an object with at least one key may begin here.
fn opens(text: &str) -> bool {
    let brackets = |c: char| matches!(c, '[' | '{') || c.is_whitespace();
    let head = &text[..text.floor_char_boundary(LONGEST_OPENING)];
    let inside = head.trim_start_matches(brackets);
    inside.starts_with(['"', '\'', '\\']) && head[..head.len() - inside.len()].contains('{')
}

/// Documentation links that reveal the meaning of an error whose text says something else.
const LINKS: &[(&str, Kind)] = &[
    // Alibaba uses OpenAI's wording for an empty account when it means tokens per minute.
    ("error-code#token-limit", Kind::RateLimited),
];

/// Keeps a text, and what its words reveal.
pub(super) fn words(text: &str, found: &mut Findings) {
    if let Some((link, kind)) = LINKS.iter().find(|(link, _)| text.contains(link)) {
        found.implied = Some((*kind, format!("the link {link}")));
    }
    let head = &text[..text.floor_char_boundary(1024)];
    // Clients print the class of an error before a colon or in parentheses. Elsewhere, a name may be an echo.
    for (end, _) in head.match_indices([':', ')']) {
        let name =
            head[..end].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        if is_class(name) && code::meaning(name).is_some() {
            found.code("", name);
        }
    }
    found.text(text);
}

/// Whether it is a class name such as `ThrottlingException`. "Error" alone, short wrappers named after their provider,
/// and Python's own class for any wrong value mean nothing.
fn is_class(name: &str) -> bool {
    let is_long = name.len() > "Exception".len() && name != "ValueError";
    is_long && (name.ends_with("Exception") || name.ends_with("Error"))
}
