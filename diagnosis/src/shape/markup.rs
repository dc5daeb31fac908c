//! Pages of proxies, of which only the title means something, and errors as XML.

use super::Findings;

pub(super) fn read(body: &str, found: &mut Findings) {
    let head = &body[..body.floor_char_boundary(16 * 1024)];
    if let Some(code) = element(head, "Code") {
        found.is_error = true;
        found.code(code);
    }
    for name in ["Message", "title", "h1"] {
        if let Some(text) = element(head, name) {
            found.text(text);
        }
    }
}

/// What stands between `<name>` and its end.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = text.match_indices('<').map(|(at, _)| at + 1).find(|at| {
        let rest = text.get(*at..*at + name.len());
        rest == Some(name) && text[*at + name.len()..].starts_with(['>', ' '])
    })?;
    let inside = &text[start..][text[start..].find('>')? + 1..];
    Some(inside[..inside.find("</")?].trim())
}
