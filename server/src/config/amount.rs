//! A setting that is a number, or `"all"`.

use std::fmt;

use serde::{Deserialize, Deserializer, de};

/// A number, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Amount {
    All,
    Only(u32),
}

impl Amount {
    pub(super) fn only(self) -> Option<u32> {
        match self {
            Self::All => None,
            Self::Only(count) => Some(count),
        }
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Visitor)
    }
}

struct Visitor;

impl de::Visitor<'_> for Visitor {
    type Value = Amount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 up, or \"all\"")
    }

    fn visit_i64<E: de::Error>(self, count: i64) -> Result<Amount, E> {
        let fits = u32::try_from(count).ok().map(Amount::Only);
        fits.ok_or_else(|| E::invalid_value(de::Unexpected::Signed(count), &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Amount, E> {
        match text {
            "all" => Ok(Amount::All),
            other => Err(E::invalid_value(de::Unexpected::Str(other), &self)),
        }
    }
}
