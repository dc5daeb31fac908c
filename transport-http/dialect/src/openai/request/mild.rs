//! Values of which only matters whether they have an effect.

use std::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

/// A value, stored in little memory however large it is.
#[derive(Debug, PartialEq)]
pub(super) enum Mild {
    Null,
    Bool(bool),
    Number(f64),
    Word(String),
    /// An empty list or object.
    Empty,
    /// A list of one string.
    OneWord(String),
    /// Anything else.
    Much,
}

/// Maximum length of a string that is examined, in bytes.
const WORD: usize = 32;

impl Mild {
    /// Whether the parameter with this name has no effect with this value.
    pub(super) fn is_nothing(&self, name: &str) -> bool {
        match (name, self) {
            (_, Self::Null | Self::Empty | Self::Bool(false)) => true,
            ("n" | "best_of", Self::Number(number)) => *number == 1.0,
            (_, Self::Number(number)) => *number == 0.0,
            ("modalities", Self::OneWord(word)) => word == "text",
            ("function_call", Self::Word(word)) => ["auto", "none"].contains(&word.as_str()),
            _ => false,
        }
    }
}

impl<'de> Deserialize<'de> for Mild {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(AnyValue)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Mild;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E>(self) -> Result<Mild, E> {
        Ok(Mild::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Mild, E> {
        Ok(Mild::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Mild, E> {
        Ok(Mild::Number(value as f64))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Mild, E> {
        Ok(Mild::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Mild, E> {
        Ok(Mild::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Mild, E> {
        Ok(if value.len() <= WORD { Mild::Word(value.to_owned()) } else { Mild::Much })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Mild, A::Error> {
        let first = list.next_element::<Mild>()?;
        let mut more = 0_usize;
        while let Some(IgnoredAny) = list.next_element()? {
            more += 1;
        }
        Ok(match (first, more) {
            (None, _) => Mild::Empty,
            (Some(Mild::Word(word)), 0) => Mild::OneWord(word),
            _ => Mild::Much,
        })
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Mild, A::Error> {
        let mut is_empty = true;
        while let Some((IgnoredAny, IgnoredAny)) = map.next_entry()? {
            is_empty = false;
        }
        Ok(if is_empty { Mild::Empty } else { Mild::Much })
    }
}
