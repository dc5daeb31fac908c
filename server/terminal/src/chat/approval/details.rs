//! Formats the arguments of a call for reading.

use crate::{visible, wording};
use everturn_wire::Value;

/// Maximum length of the displayed arguments, and of an argument's name, in characters.
const MOST: usize = 20_000;
const NAME: usize = 40;

/// Maximum length of a value shown on the same line as its name, in characters.
const SHORT: usize = 100;

/// One line for each argument; text is shown as text.
pub(super) fn of(input: &Value) -> Vec<String> {
    let mut lines = match input {
        Value::Object(entries) if entries.is_empty() => vec!["no arguments".to_owned()],
        Value::Object(entries) => entries.iter().flat_map(|(name, value)| entry(name, value)).collect(),
        other => shown(other),
    };
    // Hidden parts are reported, so that nobody approves a call without knowing that there is more.
    let hidden = cut(&mut lines);
    if hidden > 0 {
        lines.push(format!("... and {hidden} more characters that are not shown here"));
    }
    lines
}

/// Cuts the lines to the limit; returns the number of characters removed.
fn cut(lines: &mut Vec<String>) -> usize {
    let (mut left, mut hidden) = (MOST, 0);
    for line in &mut *lines {
        let length = line.chars().count();
        if let Some((end, _)) = line.char_indices().nth(left) {
            line.truncate(end);
        }
        hidden += length.saturating_sub(left);
        // An empty line takes space, too.
        left = left.saturating_sub(length + 1);
    }
    let shown = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    if hidden > 0 {
        lines.truncate(shown);
    }
    hidden
}

fn entry(name: &str, value: &Value) -> Vec<String> {
    let name = wording::one_line(name, NAME);
    let mut lines = shown(value);
    if let [line] = lines.as_slice()
        && line.chars().count() <= SHORT
    {
        return vec![format!("{name}: {line}")];
    }
    for line in &mut lines {
        line.insert_str(0, "  ");
    }
    lines.insert(0, format!("{name}:"));
    lines
}

fn shown(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            visible::visible(text).lines().map(str::to_owned).collect()
        }
        value => {
            let short = value.to_string();
            let json = match serde_json::to_string_pretty(value) {
                Ok(pretty) if short.chars().count() > SHORT => pretty,
                _ => short,
            };
            visible::json(&json).lines().map(str::to_owned).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn arguments_are_read_line_by_line() {
        for (input, expected) in [
            (json!({}), vec!["no arguments"]),
            (json!({ "sides": 6, "why": "luck" }), vec!["sides: 6", "why: luck"]),
            (json!({ "code": "if x:\n\treturn" }), vec!["code:", "  if x:", "  \treturn"]),
            (
                json!({ "path": "a\u{202e}b", "list": [1, "\u{1b}"] }),
                vec!["path: a<U+202E>b", "list: [1,\"\\u001b\"]"],
            ),
            (json!("ls\nrm"), vec!["ls", "rm"]),
            (json!({ "empty": " " }), vec!["empty: \" \""]),
        ] {
            assert_eq!(of(&input), expected);
        }
    }

    #[test]
    fn what_is_not_shown_is_counted() {
        let lines = of(&json!({ "text": "x\n".repeat(30_000) }));
        assert!(lines.len() < MOST);
        assert!(lines.last().is_some_and(|line| line.starts_with("... and ")), "{:?}", lines.last());
        let long = of(&json!({ "text": "x".repeat(30_000) }));
        let (shown, left) = (format!("  {}", "x".repeat(MOST - 8)), 30_008 - MOST);
        assert_eq!(
            long,
            ["text:", &shown, &format!("... and {left} more characters that are not shown here")]
        );
    }
}
