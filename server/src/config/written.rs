//! Where the value of a variable or header comes from.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, value::MapAccessDeserializer},
};

use super::Hidden;

/// The source of a variable's or header's value.
#[derive(Clone, Debug)]
pub(super) enum Written {
    /// The value itself.
    Here(Hidden),
    /// In this environment variable.
    Variable(Hidden),
    /// In this file.
    File(Hidden),
}

impl<'de> Deserialize<'de> for Written {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

/// The source of a value.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Place {
    env: Option<Hidden>,
    file: Option<Hidden>,
}

impl<'de> de::Visitor<'de> for Visitor {
    type Value = Written;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string, { env = \"NAME\" } or { file = \"PATH\" }")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Written, E> {
        Ok(Written::Here(text.to_owned().into()))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Written, A::Error> {
        match Place::deserialize(MapAccessDeserializer::new(map))? {
            Place { env: Some(name), file: None } => Ok(Written::Variable(name)),
            Place { env: None, file: Some(path) } => Ok(Written::File(path)),
            _ => Err(de::Error::custom("write either env = \"NAME\" or file = \"PATH\"")),
        }
    }
}
