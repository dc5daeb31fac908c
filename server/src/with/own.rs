//! Providers that a program's user has added to its configuration.

use std::{
    fs,
    io::{self, ErrorKind, Write as _},
    path::Path,
};

use anyhow::{Result, bail};
use serde_json::Value;

use super::upstream::{self, OwnProvider};
use crate::{config::Config, providers::Providers};

/// Reads a file of JSON. Says so if there is one that cannot be read.
pub(super) fn read(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).and_then(|text| Ok(parse(&text)?));
    text.inspect_err(|error| unread(path, error, "its providers are called directly")).ok()
}

/// Says that a file cannot be read, and what follows from that, unless there is none.
pub(super) fn unread(path: &Path, error: &io::Error, consequence: &str) {
    if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) {
        say(&format!("cannot read {}: {error}; {consequence}", path.display()));
    }
}

/// Returns a provider of a program, if calls can be passed on to its address. Otherwise says why not.
pub(super) fn provider(program: &str, id: &str, base_url: &str) -> Option<OwnProvider> {
    let door = format!("{program}:{id}");
    let provider = OwnProvider { id: id.to_owned(), base_url: base_url.to_owned(), door };
    let checked = check(&provider);
    checked
        .inspect_err(|why| say(&format!("{program}'s provider {id:?} is called directly: {why:#}")))
        .ok()?;
    Some(provider)
}

/// The program has not started yet.
pub(super) fn say(problem: &str) {
    let _ = writeln!(io::stderr(), "everturn: {problem}");
}

fn check(provider: &OwnProvider) -> Result<()> {
    if provider.id.contains(['?', '%']) || provider.base_url.contains('{') {
        bail!("its name has `?` or `%`, or its address has variables");
    }
    let mut config = Config::of_text(&upstream::config(&[], std::slice::from_ref(provider)))?;
    Providers::new(&mut config).map(|_| ())
}

/// Reads JSON with comments, and with commas behind the last member.
pub(super) fn parse(text: &str) -> serde_json::Result<Value> {
    let (mut plain, mut rest, mut is_quoted) = (String::new(), text, false);
    while let Some(next) = rest.chars().next() {
        let (kept, skipped) = match next {
            '"' => {
                is_quoted = !is_quoted;
                (1, 0)
            }
            '\\' if is_quoted => (1 + rest[1..].chars().next().map_or(0, char::len_utf8), 0),
            '/' if !is_quoted && rest.starts_with("//") => (0, rest.find('\n').unwrap_or(rest.len())),
            '/' if !is_quoted && rest.starts_with("/*") => {
                (0, rest[2..].find("*/").map_or(rest.len(), |end| end + 4))
            }
            '}' | ']' if !is_quoted => {
                plain.truncate(plain.trim_end().trim_end_matches(',').len());
                (1, 0)
            }
            _ => (next.len_utf8(), 0),
        };
        plain.push_str(&rest[..kept]);
        rest = &rest[kept + skipped..];
    }
    serde_json::from_str(&plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn comments_and_last_commas_are_left_out_but_not_in_strings() {
        let text = "// a\n{ \"u\": \"http://x//y, ]\", /* b, } */ \"q\\\"/*\": [1, 2, /**/ ], // c\n }";
        assert_eq!(parse(text).unwrap(), json!({ "u": "http://x//y, ]", "q\"/*": [1, 2] }));
        for broken in ["{", "\"", "/*", "// only"] {
            assert!(parse(broken).is_err(), "{broken}");
        }
    }
}
