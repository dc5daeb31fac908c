//! Limits on untrusted input.
//!
//! If a string appears in place of another type, serde's error quotes all of it with escapes, which takes many times
//! its size. The readers here report only the type they found.

mod json;
mod report;

use alloc::{format, vec::Vec};
use core::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{
        Error, Expected, MapAccess, SeqAccess, Visitor,
        value::{MapAccessDeserializer, SeqAccessDeserializer},
    },
};

use crate::Image;

pub(crate) use json::answer;
pub(crate) use report::report;

/// Maximum number of images in a message. An array of empty images would take many times its size in memory.
const MAX_IMAGES: usize = 64;

/// Reads the images of a message, if any.
pub(crate) fn images<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<Image>>, D::Error> {
    value.deserialize_any(Images)
}

/// Reads an optional boolean.
pub(crate) fn maybe_flag<'de, D: Deserializer<'de>>(value: D) -> Result<Option<bool>, D::Error> {
    value.deserialize_any(Flag)
}

/// Reads an optional whole number.
pub(crate) fn maybe_number<'de, D: Deserializer<'de>>(value: D) -> Result<Option<u64>, D::Error> {
    value.deserialize_any(Number)
}

struct Images;

impl<'de> Visitor<'de> for Images {
    type Value = Option<Vec<Image>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of images")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(a_string(&self))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut images = Vec::new();
        while let Some(Element(image)) = seq.next_element()? {
            if images.len() == MAX_IMAGES {
                return Err(A::Error::custom(format!("more than {MAX_IMAGES} images")));
            }
            images.push(image);
        }
        Ok(Some(images))
    }
}

/// An image of a message.
struct Element(Image);

impl<'de> Deserialize<'de> for Element {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(ElementVisitor)
    }
}

struct ElementVisitor;

impl<'de> Visitor<'de> for ElementVisitor {
    type Value = Element;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an image")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(a_string(&self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        Image::deserialize(MapAccessDeserializer::new(map)).map(Element)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Self::Value, A::Error> {
        Image::deserialize(SeqAccessDeserializer::new(seq)).map(Element)
    }
}

struct Flag;

impl Visitor<'_> for Flag {
    type Value = Option<bool>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("true or false")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_bool<E>(self, flag: bool) -> Result<Self::Value, E> {
        Ok(Some(flag))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(a_string(&self))
    }
}

struct Number;

impl Visitor<'_> for Number {
    type Value = Option<u64>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number of at least 0")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_u64<E>(self, number: u64) -> Result<Self::Value, E> {
        Ok(Some(number))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(a_string(&self))
    }
}

fn a_string<'de, E: Error>(expected: &impl Visitor<'de>) -> E {
    E::custom(format_args!("expected {}, got a string", expected as &dyn Expected))
}
