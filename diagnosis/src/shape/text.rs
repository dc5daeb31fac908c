//! Text that is an error, or has one inside: gateways and SDKs wrap what they got.

use serde_json::{Deserializer, Value};

use super::{DEEPEST, Findings, json, repr};
use crate::code;
use crate::kind::Kind;

/// How many places are tried as the beginning of an embedded object.
const TRIES: usize = 4;

/// The longest run of brackets and spaces before the first key, in bytes.
const LONGEST_OPENING: usize = 32;

/// The longest text that is searched for structure, in bytes.
const LONGEST: usize = 256 * 1024;

/// Takes the structure out of a text, and keeps the words around it.
pub(super) fn read(text: &str, depth: usize, found: &mut Findings) {
    let text = text.trim();
    if depth > DEEPEST || text.len() > LONGEST {
        return words(text, found);
    }
    match embedded(text) {
        Some((start, value, end)) => {
            words(&text[..start], found);
            json::read(&value, depth, found);
            words(&text[end..], found);
        }
        None => words(text, found),
    }
}

/// The first object, or array of objects, in a text, and where it begins and ends.
fn embedded(text: &str) -> Option<(usize, Value, usize)> {
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

/// Whether an object with at least one key could begin here.
fn opens(text: &str) -> bool {
    let brackets = |c: char| matches!(c, '[' | '{') || c.is_whitespace();
    let head = &text[..text.floor_char_boundary(LONGEST_OPENING)];
    let inside = head.trim_start_matches(brackets);
    inside.starts_with(['"', '\'', '\\']) && head[..head.len() - inside.len()].contains('{')
}

/// What a provider means by the part of its documentation that it leads to, where its words say something else.
const LINKS: &[(&str, Kind)] = &[
    // Alibaba, for tokens per minute, in OpenAI's words for an empty account
    ("error-code#token-limit", Kind::RateLimited),
];

fn words(text: &str, found: &mut Findings) {
    if let Some((link, kind)) = LINKS.iter().find(|(link, _)| text.contains(link)) {
        found.implied = Some((*kind, format!("the link {link}")));
    }
    let head = &text[..text.floor_char_boundary(1024)];
    // Clients print the class of an error before a colon or in parentheses; elsewhere a name may be an echo.
    for (end, _) in head.match_indices([':', ')']) {
        let name =
            head[..end].rsplit(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
        if is_class(name) && code::meaning(name).is_some() {
            found.code("", name);
        }
    }
    found.text(text);
}

/// `ThrottlingException`. "Error" alone, and short wrappers named after their provider, say nothing.
fn is_class(name: &str) -> bool {
    name.len() > "Exception".len() && (name.ends_with("Exception") || name.ends_with("Error"))
}
