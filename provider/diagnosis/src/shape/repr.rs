//! Errors as printed by a Python client (`{'error': {'code': None}}`), and JSON with escaped quotes.

use serde_json::Value;

/// Maximum length of text converted, in bytes.
const LONGEST: usize = 16 * 1024;

/// Parses the object at the start of the text, and returns its length in bytes.
pub(super) fn parse(text: &str) -> Option<(Value, usize)> {
    let text = &text[..text.floor_char_boundary(LONGEST)];
    if text.get(1..3) == Some("\\\"") {
        let value =
            serde_json::Deserializer::from_str(&text.replace("\\\"", "\"")).into_iter().next()?.ok()?;
        return Some((value, text.len()));
    }
    let (json, length) = to_json(text)?;
    Some((serde_json::from_str(&json).ok()?, length))
}

/// Converts Python's notation to JSON up to the closing bracket.
fn to_json(text: &str) -> Option<(String, usize)> {
    let mut json = String::with_capacity(text.len());
    let mut depth = 0usize;
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\'' | '"' => string(letter, &mut letters, &mut json)?,
            '{' | '[' => depth += 1,
            '}' | ']' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        match letter {
            '\'' | '"' => {}
            // `b'...'` is a string, too.
            'b' if letters.peek().is_some_and(|(_, next)| matches!(next, '\'' | '"')) => {}
            _ if letter.is_ascii_alphabetic() => {
                let rest = &text[at..];
                let length = rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
                json.push_str(match &rest[..length] {
                    "None" => "null",
                    "True" => "true",
                    "False" => "false",
                    word => word,
                });
                letters.by_ref().take(length - 1).for_each(|_| ());
            }
            _ => json.push(letter),
        }
        if depth == 0 {
            return Some((json, at + letter.len_utf8()));
        }
    }
    None
}

/// Converts one string, from after its opening quote to its closing one.
fn string(quote: char, letters: &mut impl Iterator<Item = (usize, char)>, json: &mut String) -> Option<()> {
    json.push('"');
    loop {
        match letters.next()?.1 {
            end if end == quote => break,
            '"' => json.push_str("\\\""),
            '\\' => match letters.next()?.1 {
                escaped @ ('n' | 't' | 'r' | '"' | '\\') => json.extend(['\\', escaped]),
                escaped => json.push(escaped),
            },
            control if control.is_control() => json.push(' '),
            letter => json.push(letter),
        }
    }
    json.push('"');
    Some(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::parse;

    #[test]
    fn python_becomes_json() {
        let text = r#"{'error': {'code': '429', 'type': None, "it's": b'say "no"', 'ok': True}} trailing"#;
        let (value, length) = parse(text).unwrap();
        assert_eq!(value, json!({"error": {"code": "429", "type": null, "it's": "say \"no\"", "ok": true}}));
        assert_eq!(&text[length..], " trailing");
    }

    #[test]
    fn escaped_json_is_json() {
        assert_eq!(parse(r#"{\"code\": 429}"#).unwrap().0, json!({"code": 429}));
    }

    #[test]
    fn unclosed_input_is_rejected() {
        assert!(parse("{'error': 'cut").is_none() && parse("{'a'").is_none() && parse("{]").is_none());
    }
}
