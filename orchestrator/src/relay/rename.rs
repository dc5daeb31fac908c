//! Puts a target's name of the model into a request.

use std::ops::Range;

use bytes::Bytes;

/// Replaces the strings at these places of a JSON text.
pub(super) fn renamed(body: &Bytes, places: &[Range<usize>], name: &str) -> Bytes {
    let name = serde_json::Value::from(name).to_string();
    let mut renamed = Vec::with_capacity(body.len() + places.len() * name.len());
    let mut from = 0;
    for place in places {
        renamed.extend_from_slice(&body[from..place.start]);
        renamed.extend_from_slice(name.as_bytes());
        from = place.end;
    }
    renamed.extend_from_slice(&body[from..]);
    renamed.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_is_replaced_in_place() {
        let body = Bytes::from_static(br#"{ "a":1,"model" : "x" ,"b":[1, 2],"model":"y"}"#);
        let places = [18..21, 42..45];
        assert_eq!((&body[18..21], &body[42..45]), (&b"\"x\""[..], &b"\"y\""[..]));
        let expected = r#"{ "a":1,"model" : "a\"b" ,"b":[1, 2],"model":"a\"b"}"#;
        assert_eq!(renamed(&body, &places, "a\"b"), expected);
    }
}
