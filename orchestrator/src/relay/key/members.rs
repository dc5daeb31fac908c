//! The members of a JSON body in an order of their own, because clients that keep some in a hash table (codex: `client_metadata`)
//! repeat a request with these in another order.
//!
//! Only the body's members and those of the objects directly in it: deeper, in schemas, the order means something to a model.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// Returns the names and values of a body, sorted; `None` if it is not an object. No two bodies that mean something else have the
/// same pieces.
pub(super) fn ordered(body: &[u8]) -> Option<Vec<String>> {
    let mut pieces = Vec::new();
    for (name, value) in Members::read(std::str::from_utf8(body).ok()?)? {
        pieces.push(name);
        match Members::read(value.get()) {
            Some(members) => {
                // Unlike any value, this is not JSON.
                pieces.push(format!("{{{}", members.len()));
                let flat = members.into_iter().flat_map(|(name, value)| [name, value.get().to_owned()]);
                pieces.extend(flat);
            }
            None => pieces.push(value.get().to_owned()),
        }
    }
    Some(pieces)
}

/// Names and values. A name that occurs twice is there twice, in the order of its values.
struct Members<'b>(Vec<(String, &'b RawValue)>);

impl<'b> Members<'b> {
    fn read(json: &'b str) -> Option<Vec<(String, &'b RawValue)>> {
        let Self(mut members) = serde_json::from_str(json).ok()?;
        members.sort_by(|a, b| a.0.cmp(&b.0));
        Some(members)
    }
}

impl<'de: 'b, 'b> Deserialize<'de> for Members<'b> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_map(AnyMembers)
    }
}

struct AnyMembers;

impl<'de> Visitor<'de> for AnyMembers {
    type Value = Members<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(Members(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_same(a: &str, b: &str) -> bool {
        ordered(a.as_bytes()).unwrap() == ordered(b.as_bytes()).unwrap()
    }

    #[test]
    fn order_counts_only_where_a_model_sees_it() {
        assert!(is_same(r#"{"a":1,"b":{"c":"x","d":[2]}}"#, r#"{"b":{"d":[2],"c":"x"},"a":1}"#));
        assert!(!is_same(r#"{"a":1,"b":2}"#, r#"{"a":2,"b":1}"#));
        assert!(!is_same(r#"{"a":{"b":{"c":1,"d":2}}}"#, r#"{"a":{"b":{"d":2,"c":1}}}"#));
        assert!(!is_same(r#"{"a":[{"c":1,"d":2}]}"#, r#"{"a":[{"d":2,"c":1}]}"#));
    }

    #[test]
    fn bodies_that_mean_something_else_are_told_apart() {
        assert!(!is_same(r#"{"a":1,"a":2}"#, r#"{"a":2,"a":1}"#), "the last one counts");
        assert!(!is_same(r#"{"a":{},"b":1}"#, r#"{"a":{"b":1}}"#));
        assert!(!is_same(r#"{"a":{"b":1}}"#, r#"{"a":"{1","b":1}"#));
        for other in [&b"[1]"[..], b"no JSON", b"\xff", b"{} {}", b""] {
            assert_eq!(ordered(other), None);
        }
    }
}
