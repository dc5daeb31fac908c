//! Limits on untrusted input.

use alloc::{format, vec::Vec};
use core::fmt;

use serde::{
    Deserializer,
    de::{Error, SeqAccess, Visitor},
};

use crate::Image;

/// Maximum number of images in a message: a body full of empty ones would take many times its size in memory.
const MAX_IMAGES: usize = 64;

/// Reads the images of a message, if any.
pub(crate) fn images<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Vec<Image>>, D::Error> {
    value.deserialize_option(Images)
}

struct Images;

impl<'de> Visitor<'de> for Images {
    type Value = Option<Vec<Image>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of images")
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<Self::Value, D::Error> {
        value.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut images = Vec::new();
        while let Some(image) = seq.next_element()? {
            if images.len() == MAX_IMAGES {
                return Err(A::Error::custom(format!("more than {MAX_IMAGES} images")));
            }
            images.push(image);
        }
        Ok(Some(images))
    }
}
