//! Limits on JSON values, which take far more memory than their text: six bytes can become an object of 600.

use everturn_wire::Value;
use memchr::memchr2;

/// Maximum number of JSON values in one event, and in all arguments of an answer: at worst 100 MB. A complete answer
/// repeated in an event has thousands.
pub(crate) const MOST_VALUES: usize = 1 << 18;

/// Approximate memory of a value besides its text, in bytes.
pub(crate) const HEFT: usize = 128;

/// Whether a text has more than [`MOST_VALUES`] values.
pub(crate) fn is_bulky(json: &str) -> bool {
    // A value takes at least one byte.
    json.len() > MOST_VALUES && values(json) > MOST_VALUES
}

/// Returns an upper bound of the number of values in a text, without parsing it: one, plus one for each comma and
/// opening bracket.
pub(crate) fn values(json: &str) -> usize {
    let mut rest = json.as_bytes();
    let mut count = 1;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            b'"' => after_string(after),
            _ => after,
        };
        count += usize::from(matches!(byte, b',' | b'[' | b'{'));
    }
    count
}

fn after_string(mut rest: &[u8]) -> &[u8] {
    while let Some(at) = memchr2(b'"', b'\\', rest) {
        if rest[at] == b'"' {
            return &rest[at + 1..];
        }
        rest = rest.get(at + 2..).unwrap_or_default();
    }
    &[]
}

/// Returns the approximate memory of a value, in bytes.
pub(crate) fn weight(value: &Value) -> usize {
    let inside = match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(weight).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + weight(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    HEFT + inside
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_are_counted_but_text_is_not() {
        for (json, most) in [
            ("", 1),
            ("7", 1),
            (r#"{"a":1,"b":[2,{}]}"#, 6),
            (r#"["a,b,{[", "\",\\", 1]"#, 4),
            (r#"["a\"[[[", 1]"#, 3),
            (r#"["never ends, \"#, 2),
        ] {
            assert_eq!(values(json), most, "{json}");
        }
        assert!(!is_bulky(&"x,".repeat(MOST_VALUES / 2)));
        assert!(is_bulky(&"x,".repeat(MOST_VALUES)));
        assert!(!is_bulky(&json!("x,".repeat(MOST_VALUES)).to_string()));
    }

    #[test]
    fn many_small_values_weigh_more_than_their_text() {
        let value = json!([{"": 0}, {"": 0}]);
        assert!(weight(&value) > 10 * value.to_string().len());
        assert_eq!(weight(&json!("four")), HEFT + 4);
    }
}
