//! Reads the report that a turn must end with from an untrusted frame or body.

use alloc::{boxed::Box, format};
use core::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error, MapAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::Value;

use super::{a_string, json::Limited, maybe_number};
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
    Limited {
        left: &mut left,
        too_large: || format!("the schema of the report has more than {MAX_SCHEMA} bytes"),
    }
    .deserialize(value)
}

#[cfg(test)]
mod tests {
    use alloc::string::{String, ToString};

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
