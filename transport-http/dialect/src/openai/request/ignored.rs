//! Finds the fields of a request that have no effect here, so that a client is told.

use std::{collections::BTreeSet, fmt};

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::mild::Mild;

/// Maximum number of fields that are named, and the maximum length of each, in bytes.
const MOST: usize = 32;
const LONGEST: usize = 96;

/// Fields that are off here anyway: `false` asks for nothing. Of others, it may be what was asked for.
const OFF: [&str; 3] = ["store", "strict", "echo"];

/// What a value may have in it.
#[derive(Clone, Copy)]
enum Known {
    /// Anything.
    All,
    /// An object with these fields, or a list of such objects. Any other value has no fields.
    Fields(&'static [(&'static str, Self)]),
}

use Known::{All, Fields};

const FUNCTION: Known = Fields(&[("name", All), ("description", All), ("parameters", All)]);
const CALL: Known = Fields(&[
    ("id", All),
    ("type", All),
    ("index", All),
    ("function", Fields(&[("name", All), ("arguments", All)])),
]);
const PART: Known = Fields(&[
    ("type", All),
    ("text", All),
    ("refusal", All),
    ("image_url", Fields(&[("url", All)])),
    ("file", Fields(&[("file_data", All)])),
]);
const MESSAGE: Known = Fields(&[
    ("role", All),
    ("content", PART),
    ("reasoning_content", All),
    ("tool_calls", CALL),
    ("tool_call_id", All),
]);

/// The fields that have an effect, or are refused by name if they would have one.
const REQUEST: Known = Fields(&[
    ("model", All),
    ("messages", MESSAGE),
    ("stream", All),
    ("stream_options", Fields(&[("include_usage", All)])),
    ("temperature", All),
    ("top_p", All),
    ("stop", All),
    ("tools", Fields(&[("type", All), ("function", FUNCTION)])),
    ("tool_choice", All),
    ("parallel_tool_calls", All),
    (
        "response_format",
        Fields(&[("type", All), ("json_schema", Fields(&[("name", All), ("schema", All), ("strict", All)]))]),
    ),
    ("max_tokens", All),
    ("max_completion_tokens", All),
    ("seed", All),
    ("presence_penalty", All),
    ("frequency_penalty", All),
    ("reasoning_effort", All),
    ("metadata", Fields(&[("conversation_id", All)])),
    ("everturn", All),
    ("n", All),
    ("logprobs", All),
    ("top_logprobs", All),
    ("logit_bias", All),
    ("audio", All),
    ("modalities", All),
    ("web_search_options", All),
    ("functions", All),
    ("function_call", All),
    ("best_of", All),
    ("guided_json", All),
    ("guided_regex", All),
]);

/// Returns the names of the fields without effect, sorted, such as `tools[].function.strict`; "..." for more of them. A field
/// whose value asks for nothing (null, empty) is not named.
pub(super) fn names(body: &[u8]) -> Vec<String> {
    let mut names = BTreeSet::new();
    let walk = Walk { known: REQUEST, path: "", names: &mut names };
    // The body has been parsed before.
    let _ = walk.deserialize(&mut serde_json::Deserializer::from_slice(body));
    names.into_iter().collect()
}

/// A value at a path.
struct Walk<'a> {
    known: Known,
    path: &'a str,
    names: &'a mut BTreeSet<String>,
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: serde::Deserializer<'de>>(self, value: D) -> Result<(), D::Error> {
        match self.known {
            All => value.deserialize_ignored_any(IgnoredAny).map(drop),
            Fields(_) => value.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Self { known, path, names } = self;
        let Fields(fields) = known else { return Ok(()) };
        while let Some(name) = map.next_key::<String>()? {
            let is_first = path.is_empty();
            let path = || if is_first { name.clone() } else { format!("{path}.{name}") };
            match fields.iter().find(|(known, _)| *known == name) {
                Some((_, All)) => drop(map.next_value::<IgnoredAny>()?),
                Some((_, known)) => {
                    map.next_value_seed(Walk { known: *known, path: &path(), names })?;
                }
                None => {
                    let is_nothing = match map.next_value()? {
                        Mild::Null | Mild::Empty => true,
                        Mild::Bool(false) => OFF.contains(&name.as_str()),
                        _ => false,
                    };
                    if !is_nothing {
                        names.insert(if names.len() < MOST { printable(&path()) } else { "...".to_owned() });
                    }
                }
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let Self { known, path, names } = self;
        let path = format!("{path}[]");
        while list.next_element_seed(Walk { known, path: &path, names })?.is_some() {}
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }
}

/// Makes a name fit for a header.
fn printable(name: &str) -> String {
    let fits = |c: char| c.is_ascii_graphic() && c != ',';
    name.chars().take(LONGEST).map(|c| if fits(c) { c } else { '?' }).collect()
}
