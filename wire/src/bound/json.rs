//! Reads JSON of any shape within a limit.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use serde::{
    Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor},
};
use serde_json::{Map, Number, Value};

use crate::QuestionAnswer;

/// Reads the answer to a question, if there is one.
pub(crate) fn answer<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Value>, D::Error> {
    let mut left = QuestionAnswer::MAX_CONTENT;
    let too_large = || format!("the answer has more than {} bytes", QuestionAnswer::MAX_CONTENT);
    let content = Limited { left: &mut left, too_large }.deserialize(value)?;
    Ok(Some(content).filter(|content| !content.is_null()))
}

/// Reads a JSON value within a budget of bytes.
pub(super) struct Limited<'a> {
    pub(super) left: &'a mut usize,
    /// What to say if it has more.
    pub(super) too_large: fn() -> String,
}

impl Limited<'_> {
    /// Deducts bytes from the budget.
    fn spend<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        *self.left = self.left.checked_sub(bytes).ok_or_else(|| E::custom((self.too_large)()))?;
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Limited<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<Value, D::Error> {
        value.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Limited<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(mut self) -> Result<Value, E> {
        self.spend(4).map(|()| Value::Null)
    }

    fn visit_bool<E: Error>(mut self, value: bool) -> Result<Value, E> {
        self.spend(4).map(|()| Value::Bool(value))
    }

    fn visit_u64<E: Error>(mut self, value: u64) -> Result<Value, E> {
        self.spend(1).map(|()| value.into())
    }

    fn visit_i64<E: Error>(mut self, value: i64) -> Result<Value, E> {
        self.spend(2).map(|()| value.into())
    }

    fn visit_f64<E: Error>(mut self, value: f64) -> Result<Value, E> {
        self.spend(3).map(|()| Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(mut self, value: &str) -> Result<Value, E> {
        self.spend(value.len().saturating_add(2)).map(|()| Value::String(value.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<Value, A::Error> {
        self.spend(2)?;
        let mut values = Vec::new();
        while let Some(value) =
            list.next_element_seed(Limited { left: self.left, too_large: self.too_large })?
        {
            self.spend(usize::from(!values.is_empty()))?;
            values.push(value);
        }
        Ok(Value::Array(values))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Value, A::Error> {
        self.spend(2)?;
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            // Two quotes, a colon, and a comma from the second field on.
            self.spend(name.len().saturating_add(3 + usize::from(!fields.is_empty())))?;
            let value = map.next_value_seed(Limited { left: self.left, too_large: self.too_large })?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}
