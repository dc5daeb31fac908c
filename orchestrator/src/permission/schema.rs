//! Checks arguments against the schema of their tool. The only module that knows the validator.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

use everturn_kernel::ToolSpec;
use everturn_wire::Value;
use jsonschema::Validator;

/// Maximum number of violations reported for a call.
const MAX_TOLD: usize = 5;

/// Maximum length of a violation's text, in characters; it may quote the arguments.
const MAX_TEXT: usize = 200;

/// Compiled schemas by tool name. Bounded by the number of tools.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<HashMap<String, Compiled>>);

struct Compiled {
    /// The source of the compiled schema, as a server may change its tools.
    schema: Value,
    /// `None` = the schema cannot be used; this was logged, and arguments are not checked.
    validator: Option<Arc<Validator>>,
}

impl Schemas {
    /// Checks arguments against the schema of a tool.
    ///
    /// # Errors
    /// What does not fit, worded for the model.
    pub(crate) fn validate(&self, spec: &ToolSpec, input: &Value) -> Result<(), String> {
        let Some(validator) = self.validator(spec) else { return Ok(()) };
        let told: Vec<String> =
            validator.iter_errors(input).take(MAX_TOLD + 1).map(|error| told(&error)).collect();
        match told.len() {
            0 => Ok(()),
            1..=MAX_TOLD => Err(told.join("; ")),
            _ => Err(format!("{}; and more", told[..MAX_TOLD].join("; "))),
        }
    }

    /// Checks a schema.
    ///
    /// # Errors
    /// Why the schema cannot be used.
    pub(crate) fn check(schema: &Value) -> Result<(), String> {
        compile(schema).map(drop)
    }

    fn validator(&self, spec: &ToolSpec) -> Option<Arc<Validator>> {
        let mut compiled = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.get(&spec.name).filter(|known| known.schema == spec.parameters) {
            return known.validator.clone();
        }
        let validator = compile(&spec.parameters)
            .inspect_err(|error| {
                tracing::warn!(
                    tool = spec.name,
                    error,
                    "the schema of a tool cannot be used: its arguments are not checked"
                );
            })
            .ok();
        let known = Compiled { schema: spec.parameters.clone(), validator: validator.clone() };
        compiled.insert(spec.name.clone(), known);
        validator
    }
}

/// Compiles a schema. It may not refer to anything outside itself: references to files or addresses are errors.
fn compile(schema: &Value) -> Result<Arc<Validator>, String> {
    let mut schema = schema.clone();
    // The validator would reject the whole schema for an unknown dialect.
    if let Some(fields) = schema.as_object_mut()
        && fields.get("$schema").is_some_and(|dialect| !is_known(dialect))
    {
        fields.shift_remove("$schema");
    }
    let compiled = jsonschema::validator_for(&schema);
    compiled.map(Arc::new).map_err(|error| error.to_string().chars().take(MAX_TEXT).collect())
}

fn is_known(dialect: &Value) -> bool {
    dialect.as_str().is_some_and(|uri| uri.contains("json-schema.org/"))
}

fn told(error: &jsonschema::ValidationError<'_>) -> String {
    let (place, text) = (error.instance_path().to_string(), error.to_string());
    let text: String = match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    };
    if place.is_empty() { text } else { format!("{place}: {text}") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spec(parameters: Value) -> ToolSpec {
        ToolSpec { name: "read".into(), description: String::new(), parameters }
    }

    #[test]
    fn what_does_not_fit_is_told_with_its_place() {
        let schemas = Schemas::default();
        let spec = spec(json!({
            "type": "object",
            "properties": { "path": { "type": "string" }, "lines": { "type": "integer", "minimum": 1 } },
            "required": ["path"],
        }));
        assert_eq!(schemas.validate(&spec, &json!({ "path": "a", "lines": 3 })), Ok(()));
        let why = schemas.validate(&spec, &json!({ "lines": 0 })).unwrap_err();
        assert!(why.contains("\"path\" is a required property"), "{why}");
        assert!(why.contains("/lines: 0 is less than the minimum of 1"), "{why}");
    }

    #[test]
    fn a_long_argument_is_not_repeated() {
        let why =
            Schemas::default().validate(&spec(json!({ "type": "object" })), &json!("x".repeat(1 << 20)));
        assert!(why.unwrap_err().len() < 400);
    }

    #[test]
    fn a_schema_that_cannot_be_used_checks_nothing() {
        let schemas = Schemas::default();
        for schema in [
            json!({ "type": 7 }),
            json!({ "$ref": "https://example.com/schema.json" }),
            json!({ "$ref": "file:///etc/passwd" }),
        ] {
            assert_eq!(schemas.validate(&spec(schema), &json!({})), Ok(()));
        }
        let odd = spec(json!({ "$schema": "https://example.com/dialect", "type": "object" }));
        assert!(schemas.validate(&odd, &json!(1)).is_err(), "an unknown dialect is read as the usual one");
    }

    #[test]
    fn a_changed_schema_is_compiled_anew() {
        let schemas = Schemas::default();
        assert_eq!(schemas.validate(&spec(json!({ "type": "object" })), &json!({})), Ok(()));
        assert!(schemas.validate(&spec(json!({ "type": "array" })), &json!({})).is_err());
    }
}
