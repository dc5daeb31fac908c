//! Reads settings from untrusted JSON. Errors never quote a value, which may be megabytes long.

use core::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{
    AfterContent, Change, FallbackChains, OnQuota, RetryPatch, RetryPreset, RetrySettings, RouteRevert,
};

/// A type that a setting can have.
trait Setting: Sized {
    const EXPECTED: &str;

    fn from_flag(_: bool) -> Option<Self> {
        None
    }

    fn from_number(_: f64) -> Option<Self> {
        None
    }

    fn from_word(_: &str) -> Option<Self> {
        None
    }

    fn from_map<'de, A: MapAccess<'de>>(_: A) -> Result<Option<Self>, A::Error> {
        Ok(None)
    }
}

impl Setting for FallbackChains {
    const EXPECTED: &str = Self::EXPECTED;

    fn from_map<'de, A: MapAccess<'de>>(map: A) -> Result<Option<Self>, A::Error> {
        Self::read(map).map(Some)
    }
}

impl Setting for bool {
    const EXPECTED: &str = "true or false";

    fn from_flag(flag: bool) -> Option<Self> {
        Some(flag)
    }
}

impl Setting for u32 {
    const EXPECTED: &str = "a whole number";

    fn from_number(number: f64) -> Option<Self> {
        let whole = number as Self;
        (f64::from(whole) == number).then_some(whole)
    }
}

impl Setting for u64 {
    const EXPECTED: &str = "a whole number of milliseconds";

    fn from_number(number: f64) -> Option<Self> {
        // Saturates: a negative number becomes 0.
        let whole = number as Self;
        (whole as f64 == number || (number < 0.0 && number as i64 as f64 == number)).then_some(whole)
    }
}

impl Setting for f64 {
    const EXPECTED: &str = "a number";

    fn from_number(number: f64) -> Option<Self> {
        Some(number)
    }
}

macro_rules! words {
    ($($name:ident)*) => {
        $(impl Setting for $name {
            const EXPECTED: &str = Self::EXPECTED;

            fn from_word(word: &str) -> Option<Self> {
                Some(Self::from_word(word).unwrap_or(Self::Unknown))
            }
        })*
    };
}

words!(RetryPreset RouteRevert AfterContent OnQuota);

/// Reads a value for the field with this name.
struct Value<T>(&'static str, PhantomData<T>);

impl<'de, T: Setting> DeserializeSeed<'de> for Value<T> {
    type Value = Change<T>;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Change<T>, D::Error> {
        value.deserialize_any(self)
    }
}

impl<T: Setting> Value<T> {
    fn set<E: Error>(&self, value: Option<T>) -> Result<Change<T>, E> {
        let wrong = || E::custom(format_args!("{} must be {}, or null to inherit it", self.0, T::EXPECTED));
        value.map(Change::Set).ok_or_else(wrong)
    }
}

impl<'de, T: Setting> Visitor<'de> for Value<T> {
    type Value = Change<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(T::EXPECTED)
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Change::Inherit)
    }

    fn visit_none<E>(self) -> Result<Self::Value, E> {
        Ok(Change::Inherit)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Self::Value, E> {
        self.set(T::from_flag(flag))
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Self::Value, E> {
        self.set(T::from_number(number as f64))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Self::Value, E> {
        self.set(T::from_number(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Self::Value, E> {
        self.set(T::from_number(number))
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<Self::Value, E> {
        self.set(T::from_word(word))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, _: A) -> Result<Self::Value, A::Error> {
        self.set(None)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        self.set(T::from_map(map)?)
    }
}

/// The name of a field. The name of an unknown field is not kept.
pub(crate) enum Key {
    /// `conversationId`.
    Conversation,
    /// The name of a setting.
    Setting(&'static str),
    Unknown,
}

pub(super) const SETTINGS: [&str; 10] = [
    "preset",
    "enabled",
    "maxRetries",
    "baseDelayMs",
    "maxDelayMs",
    "jitter",
    "revert",
    "afterContent",
    "quota",
    "fallbackChains",
];

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(key: D) -> Result<Self, D::Error> {
        key.deserialize_identifier(KeyVisitor)
    }
}

struct KeyVisitor;

impl Visitor<'_> for KeyVisitor {
    type Value = Key;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the name of a field")
    }

    fn visit_str<E>(self, key: &str) -> Result<Key, E> {
        Ok(match SETTINGS.into_iter().find(|known| *known == key) {
            Some(known) => Key::Setting(known),
            None if key == "conversationId" => Key::Conversation,
            None => Key::Unknown,
        })
    }
}

/// Reads the value of this setting into the patch.
pub(crate) fn read_change<'de, A: MapAccess<'de>>(
    patch: &mut RetryPatch,
    name: &'static str,
    map: &mut A,
) -> Result<(), A::Error> {
    fn next<'de, T: Setting, A: MapAccess<'de>>(
        name: &'static str,
        map: &mut A,
    ) -> Result<Option<Change<T>>, A::Error> {
        map.next_value_seed(Value::<T>(name, PhantomData)).map(Some)
    }
    match name {
        "preset" => patch.preset = next(name, map)?,
        "enabled" => patch.enabled = next(name, map)?,
        "maxRetries" => patch.max_retries = next(name, map)?,
        "baseDelayMs" => patch.base_delay_ms = next(name, map)?,
        "maxDelayMs" => patch.max_delay_ms = next(name, map)?,
        "jitter" => patch.jitter = next(name, map)?,
        "revert" => patch.revert = next(name, map)?,
        "afterContent" => patch.after_content = next(name, map)?,
        "quota" => patch.quota = next(name, map)?,
        "fallbackChains" => patch.fallback_chains = next(name, map)?,
        _ => drop(map.next_value::<IgnoredAny>()?),
    }
    Ok(())
}

impl<'de> Deserialize<'de> for RetryPatch {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(PatchVisitor)
    }
}

impl<'de> Deserialize<'de> for RetrySettings {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        RetryPatch::deserialize(value).map(|patch| patch.applied_to(&Self::default()))
    }
}

struct PatchVisitor;

impl<'de> Visitor<'de> for PatchVisitor {
    type Value = RetryPatch;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with retry settings")
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<RetryPatch, E> {
        Err(E::custom("expected an object with retry settings, got a string"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RetryPatch, A::Error> {
        let mut patch = RetryPatch::default();
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Setting(name) => read_change(&mut patch, name, &mut map)?,
                Key::Conversation | Key::Unknown => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(patch)
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    fn read(json: &str) -> Result<RetryPatch, alloc::string::String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_field_is_set_reset_or_left_as_it_is() {
        let old = RetrySettings { max_retries: Some(5), jitter: Some(0.5), ..RetrySettings::default() };
        let patch = read(r#"{"maxRetries":null,"preset":"cycling","later":[1]}"#).unwrap();
        let new = patch.applied_to(&old);
        let expected = RetrySettings {
            preset: Some(RetryPreset::Cycling),
            jitter: Some(0.5),
            ..RetrySettings::default()
        };
        assert_eq!(new, expected);
        assert_eq!(serde_json::to_string(&patch).unwrap(), r#"{"preset":"cycling","maxRetries":null}"#);
    }

    #[test]
    fn a_negative_longest_wait_is_zero() {
        let patch = read(r#"{"maxDelayMs":-1}"#).unwrap();
        assert_eq!(patch.max_delay_ms, Some(Change::Set(0)));
    }

    #[test]
    fn an_invalid_value_is_reported_by_the_name_of_its_field() {
        for (json, why) in [
            (r#"{"enabled":1}"#, "enabled must be true or false, or null to inherit it"),
            (r#"{"maxRetries":1.5}"#, "maxRetries must be a whole number, or null to inherit it"),
            (r#"{"maxRetries":-1}"#, "maxRetries must be a whole number"),
            (r#"{"baseDelayMs":"soon"}"#, "baseDelayMs must be a whole number of milliseconds"),
            (r#"{"jitter":[]}"#, "jitter must be a number"),
            (r#"{"preset":7}"#, "preset must be one of the words: patient exponential interactive cycling"),
            (
                r#"{"fallbackChains":"a/m"}"#,
                "fallbackChains must be an object with a list of names for each model",
            ),
            (
                r#"{"fallbackChains":{"a/m":"b/m"}}"#,
                "expected a list of names in fallbackChains, got a string",
            ),
            (r#""on""#, "expected an object with retry settings, got a string"),
        ] {
            assert!(read(json).unwrap_err().starts_with(why), "{json}: {}", read(json).unwrap_err());
        }
    }
}
