//! Reads what must be known of a request: the model's name and place, whether it asks for a stream, and whether it asks
//! Everturn for something.

use std::{borrow::Cow, fmt, ops::Range};

use everturn_orchestrator::{AskedModel, ModelPlace};
use serde::de::{Deserializer as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

/// What is known of a request.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(super) model: Option<AskedModel>,
    pub(super) streams: bool,
    /// How many tokens its answer may have.
    pub(super) max_output: Option<u64>,
    /// Whether it has a field of Everturn's own, which a vendor does not know: `everturn`, or the name of a conversation.
    pub(super) asks_us: bool,
}

/// Reads a body. Of one that is not a JSON object, nothing is known; its provider will say so.
pub(super) fn body(json: &[u8]) -> Known {
    let mut reader = serde_json::Deserializer::from_slice(json);
    let Ok(Fields { model, places, has_others, streams, max_output, asks_us }) =
        reader.deserialize_map(Reading(json))
    else {
        return Known::default();
    };
    if reader.end().is_err() {
        return Known::default();
    }
    let is_ambiguous = has_others || places.len() > 1;
    let model = model.map(|name| AskedModel { name, place: ModelPlace::Body(places), is_ambiguous });
    Known { model, streams, max_output, asks_us }
}

#[derive(Default)]
struct Fields {
    model: Option<String>,
    /// Where the name is: more than once if the field is, as it is not known which one counts.
    places: Vec<Range<usize>>,
    /// Whether there are fields that some providers take for the model's name, or for names of others.
    has_others: bool,
    streams: bool,
    max_output: Option<u64>,
    asks_us: bool,
}

struct Reading<'j>(&'j [u8]);

impl<'de> Visitor<'de> for Reading<'de> {
    type Value = Fields;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
        let mut fields = Fields::default();
        while let Some(name) = map.next_key::<Cow<'de, str>>()? {
            match &*name {
                "model" => {
                    let value = map.next_value::<&'de RawValue>()?.get();
                    if let Ok(model) = serde_json::from_str(value) {
                        let start = value.as_ptr() as usize - self.0.as_ptr() as usize;
                        fields.places.push(start..start + value.len());
                        fields.model = Some(model);
                    }
                }
                "stream" => fields.streams = map.next_value::<&'de RawValue>()?.get() == "true",
                "max_tokens" | "max_completion_tokens" | "max_output_tokens" => {
                    let most = map.next_value::<&'de RawValue>()?.get().parse().ok();
                    fields.max_output = fields.max_output.max(most);
                }
                "everturn" => {
                    fields.asks_us = true;
                    map.next_value::<IgnoredAny>()?;
                }
                "metadata" => fields.asks_us |= names_conversation(map.next_value::<&'de RawValue>()?),
                other => {
                    fields.has_others |= other == "models" || other.eq_ignore_ascii_case("model");
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(fields)
    }
}

/// Whether metadata names a conversation.
fn names_conversation(metadata: &RawValue) -> bool {
    #[derive(serde::Deserialize)]
    struct Metadata {
        conversation_id: Option<IgnoredAny>,
    }
    // Serde would read a list, as the fields in order.
    metadata.get().starts_with('{')
        && serde_json::from_str::<Metadata>(metadata.get()).is_ok_and(|known| known.conversation_id.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_model_is_found_where_it_is() {
        let json = br#" {"messages":[{"model":"no"}], "model" : "a\"b", "stream": true , "x":{}}"#;
        let Known { model, streams, .. } = body(json);
        let AskedModel { name, place, is_ambiguous } = model.unwrap();
        assert!(!is_ambiguous);
        let ModelPlace::Body(places) = place else { panic!("{place:?}") };
        assert_eq!((name.as_str(), streams, places.len()), ("a\"b", true, 1));
        assert_eq!(&json[places[0].clone()], br#""a\"b""#);
    }

    #[test]
    fn a_field_given_twice_is_found_twice() {
        for json in [r#"{"model":"a","Model":"b"}"#, r#"{"models":["b"],"model":"a"}"#] {
            assert!(body(json.as_bytes()).model.unwrap().is_ambiguous, "{json}");
        }
        let AskedModel { name, place, is_ambiguous } = body(br#"{"model":"a","model":"b"}"#).model.unwrap();
        assert!(is_ambiguous);
        assert_eq!(name, "b");
        assert_eq!(place, ModelPlace::Body(vec![9..12, 21..24]));
    }

    #[test]
    fn the_longest_answer_that_is_asked_for_is_found() {
        for (json, most) in [
            (r#"{"max_tokens":5}"#, Some(5)),
            (r#"{"max_tokens":5,"max_completion_tokens":7}"#, Some(7)),
            (r#"{"max_output_tokens":9,"max_tokens":null}"#, Some(9)),
            (r#"{"max_tokens":"5"}"#, None),
            (r#"{"max_tokens":-1}"#, None),
            (r#"{"messages":[{"max_tokens":5}]}"#, None),
        ] {
            assert_eq!(body(json.as_bytes()).max_output, most, "{json}");
        }
    }

    #[test]
    fn nothing_is_known_of_what_is_no_object() {
        for json in [&b""[..], b"[]", b"{\"model\":\"a\"", b"{\"model\":\"a\"} x", b"\xff"] {
            assert_eq!(body(json), Known::default(), "{json:?}");
        }
        assert_eq!(body(br#"{"model":7,"stream":"true"}"#), Known::default());
    }

    #[test]
    fn what_is_asked_of_us_is_seen_at_the_top_only() {
        for (json, asks_us) in [
            (r#"{"everturn":{}}"#, true),
            (r#"{"everturn":null}"#, true),
            (r#"{"metadata":{"a":"b","conversation_id":"c"}}"#, true),
            (r#"{"metadata":{"conversation_id":null}}"#, false),
            (r#"{"metadata":["conversation_id"],"messages":[{"everturn":{}}]}"#, false),
        ] {
            assert_eq!(body(json.as_bytes()).asks_us, asks_us, "{json}");
        }
    }
}
