//! HTML pages of proxies, whose title and requested wait are used, and XML errors.

use super::Findings;

/// Maximum length of a sentence with a wait, in bytes.
const LONGEST_WAIT: usize = 64;

pub(super) fn read(body: &str, found: &mut Findings) {
    let head = &body[..body.floor_char_boundary(16 * 1024)];
    if let Some(code) = element(head, "Code") {
        found.is_error = true;
        found.code("Code", code);
    }
    for name in ["Message", "title", "h1"] {
        if let Some(text) = element(head, name) {
            found.text(text);
        }
    }
    if let Some(wait) = wait(head) {
        found.text(wait);
    }
}

/// Finds "try again in 30 seconds" anywhere in the page.
fn wait(page: &str) -> Option<&str> {
    let rest = &page[["try again in ", "retry in "].iter().find_map(|phrase| page.find(phrase))?..];
    let rest = &rest[..rest.floor_char_boundary(LONGEST_WAIT)];
    Some(&rest[..rest.find('<').unwrap_or(rest.len())])
}

/// Returns the text between `<name>` and its end tag. Old pages write names in capitals.
fn element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let start = text.match_indices('<').map(|(at, _)| at + 1).find(|at| {
        let rest = text.get(*at..*at + name.len());
        rest.is_some_and(|rest| rest.eq_ignore_ascii_case(name))
            && text[*at + name.len()..].starts_with(['>', ' '])
    })?;
    let inside = &text[start..][text[start..].find('>')? + 1..];
    Some(inside[..inside.find("</")?].trim())
}
