//! Reads the report that a turn must end with from an untrusted frame or body.

use alloc::{boxed::Box, format, string::String, vec::Vec};
use core::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Number, Value};

use super::{a_string, maybe_number};
use crate::RequiredReport;

const MAX_SCHEMA: usize = RequiredReport::MAX_SCHEMA;

/// Reads the report that a turn must end with, if any.
pub(crate) fn report<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Box<RequiredReport>>, D::Error> {
    value.deserialize_any(Report)
}

struct Report;

impl<'de> Visitor<'de> for Report {
    type Value = Option<Box<RequiredReport>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with the schema of a report")
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Self::Value, E> {
        Err(a_string(&self))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let Fields { schema, max_attempts } = Fields::deserialize(MapAccessDeserializer::new(map))?;
        // A number that does not fit exceeds the limit in any case.
        let max_attempts = max_attempts.map(|attempts| u32::try_from(attempts).unwrap_or(u32::MAX));
        Ok(Some(Box::new(RequiredReport { schema, max_attempts })))
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Fields {
    #[serde(deserialize_with = "schema")]
    schema: Value,
    #[serde(default, deserialize_with = "maybe_number")]
    max_attempts: Option<u64>,
}

fn schema<'de, D: Deserializer<'de>>(value: D) -> Result<Value, D::Error> {
    let mut left = MAX_SCHEMA;
    Limited(&mut left).deserialize(value)
}

/// Reads a JSON value within a budget of bytes.
struct Limited<'a>(&'a mut usize);

impl Limited<'_> {
    /// Deducts bytes from the budget.
    fn spend<E: Error>(&mut self, bytes: usize) -> Result<(), E> {
        let too_large = || E::custom(format!("the schema of the report has more than {MAX_SCHEMA} bytes"));
        *self.0 = self.0.checked_sub(bytes).ok_or_else(too_large)?;
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
        while let Some(value) = list.next_element_seed(Limited(self.0))? {
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
            let value = map.next_value_seed(Limited(self.0))?;
            fields.insert(name, value);
        }
        Ok(Value::Object(fields))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use serde_json::json;

    use super::*;
    use crate::Command;

    fn parse(report: &str) -> Result<Option<RequiredReport>, String> {
        let frame = format!(r#"{{"type":"chat.send","message":"Hi","finalReport":{report}}}"#);
        match Command::parse(&frame).map_err(|error| error.to_string())? {
            Command::ChatSend { final_report, .. } => Ok(final_report.map(|report| *report)),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_schema_is_read_as_it_is() {
        let schema = json!({ "type": "object", "properties": { "a": { "enum": [null, true, -1, 2, 1.5, "x", [], {}] } } });
        let read = parse(&json!({ "schema": schema, "maxAttempts": 5 }).to_string());
        assert_eq!(read, Ok(Some(RequiredReport { schema, max_attempts: Some(5) })));
        assert_eq!(parse("null"), Ok(None));
        let many = parse(r#"{"schema":{},"maxAttempts":9000000000}"#);
        assert_eq!(many.unwrap().unwrap().max_attempts, Some(u32::MAX));
    }

    #[test]
    fn a_schema_of_64_kib_is_read_and_a_larger_one_is_not() {
        for fill in [
            |bytes: usize| json!("x".repeat(bytes - 2)),
            |bytes: usize| Value::Array((0..(bytes - 1) / 2).map(|_| json!(1)).collect()),
        ] {
            let exact = fill(MAX_SCHEMA);
            assert!(exact.to_string().len() <= MAX_SCHEMA);
            assert!(parse(&json!({ "schema": exact }).to_string()).is_ok());
            let larger = json!({ "schema": fill(MAX_SCHEMA + 2) });
            let why = "chat.send: the schema of the report has more than 65536 bytes";
            assert_eq!(parse(&larger.to_string()).unwrap_err(), why);
        }
    }

    #[test]
    fn problems_are_reported() {
        for (report, why) in [
            ("{}", "chat.send: missing field `schema`"),
            (r#""x""#, "chat.send: expected an object with the schema of a report, got a string"),
            ("7", "chat.send: invalid type: integer `7`, expected an object with the schema of a report"),
            (
                r#"{"schema":{},"maxAttempts":"x"}"#,
                "chat.send: expected a whole number of at least 0, got a string",
            ),
        ] {
            assert_eq!(parse(report).unwrap_err(), why, "{report}");
        }
    }
}
