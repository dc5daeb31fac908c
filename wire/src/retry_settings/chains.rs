//! Fallback chains: models to ask instead of a model that fails.

use alloc::{collections::BTreeMap, string::String, vec::Vec};
use core::fmt;

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, SeqAccess, Visitor},
};

/// Maximum numbers of chains per scope, names per chain, and bytes per name.
const MAX_CHAINS: usize = 32;
const MAX_NAMES: usize = 16;
const MAX_NAME: usize = 256;

/// For each model, by its id: the models to ask in its place when it fails, in order. A route stands for its targets. A
/// route can have a chain too, which comes after the route's own targets. Chains are not followed transitively. At most
/// 32 chains of 16 names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema), schemars(inline))]
pub struct FallbackChains(pub BTreeMap<String, Vec<String>>);

impl FallbackChains {
    /// The expected value, for error messages.
    pub(super) const EXPECTED: &str = "an object with a list of names for each model";

    /// Reads chains from untrusted JSON, within their limits.
    pub(super) fn read<'de, A: MapAccess<'de>>(mut map: A) -> Result<Self, A::Error> {
        let mut chains = BTreeMap::new();
        while let Some(Name(of)) = map.next_key()? {
            if chains.len() == MAX_CHAINS {
                return Err(A::Error::custom(format_args!(
                    "fallbackChains has more than {MAX_CHAINS} chains"
                )));
            }
            let Names(names) = map.next_value()?;
            chains.insert(of, names);
        }
        Ok(Self(chains))
    }
}

struct Name(String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(name: D) -> Result<Self, D::Error> {
        name.deserialize_str(NameVisitor)
    }
}

struct NameVisitor;

impl Visitor<'_> for NameVisitor {
    type Value = Name;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a model or route")
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name, E> {
        match name.len() {
            0..=MAX_NAME => Ok(Name(name.into())),
            _ => Err(E::custom(format_args!("a name in fallbackChains is longer than {MAX_NAME} bytes"))),
        }
    }
}

struct Names(Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(names: D) -> Result<Self, D::Error> {
        // If a list is requested, serde's error quotes a string of any length.
        names.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of names of models or routes")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Names, E> {
        Err(E::custom("expected a list of names in fallbackChains, got a string"))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Names, A::Error> {
        let mut names = Vec::new();
        while let Some(Name(name)) = seq.next_element()? {
            if names.len() == MAX_NAMES {
                let why = format_args!("a chain in fallbackChains has more than {MAX_NAMES} names");
                return Err(A::Error::custom(why));
            }
            names.push(name);
        }
        Ok(Names(names))
    }
}
