//! Checks arguments against the schema of their tool. The only module that knows the validator.

use std::{
    collections::HashMap,
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use boon::{SchemaIndex, UrlLoader, ValidationError};
use everturn_kernel::ToolSpec;
use everturn_wire::Value;

/// Maximum number of violations reported for a call.
const MAX_TOLD: usize = 5;

/// Maximum length of a violation's text, in characters; it may quote the arguments.
const MAX_TEXT: usize = 200;

/// The address under which a schema is compiled. Nothing is ever loaded from it.
const ADDRESS: &str = "schema:///";

/// Compiled schemas by tool name. Bounded by the number of tools.
#[derive(Default)]
pub(crate) struct Schemas(Mutex<HashMap<String, Compiled>>);

/// A compiled schema.
struct Validator {
    schemas: boon::Schemas,
    root: SchemaIndex,
}

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
        let Err(error) = validator.schemas.validate(input, validator.root) else { return Ok(()) };
        let mut told = Vec::new();
        tell(&error, &mut told);
        match told.len() {
            0..=MAX_TOLD => Err(told.join("; ")),
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
    drop_fractions(&mut schema);
    let compile = || -> Result<Validator, Box<dyn Error>> {
        let (mut schemas, mut compiler) = (boon::Schemas::new(), boon::Compiler::new());
        compiler.use_loader(Box::new(Nothing));
        compiler.add_resource(ADDRESS, schema)?;
        let root = compiler.compile(ADDRESS, &mut schemas)?;
        Ok(Validator { schemas, root })
    };
    compile().map(Arc::new).map_err(|error| shortened(error.to_string()))
}

fn is_known(dialect: &Value) -> bool {
    dialect.as_str().is_some_and(|uri| uri.contains("json-schema.org/"))
}

/// Removes each `multipleOf` that is not a whole number: the validator divides in binary, where 19.99 is no multiple of 0.01.
fn drop_fractions(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields
                .get("multipleOf")
                .is_some_and(|step| step.is_f64() && step.as_f64().is_some_and(|step| step.fract() != 0.0))
            {
                fields.shift_remove("multipleOf");
            }
            fields.values_mut().for_each(drop_fractions);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_fractions),
        _ => {}
    }
}

/// Loads nothing: a schema has to be complete.
struct Nothing;

impl UrlLoader for Nothing {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        Err(format!("a schema may not refer to {url}, outside itself").into())
    }
}

/// Collects the violations that have no causes of their own.
fn tell(error: &ValidationError<'_, '_>, told: &mut Vec<String>) {
    if told.len() > MAX_TOLD {
        return;
    }
    if !error.causes.is_empty() {
        return error.causes.iter().for_each(|cause| tell(cause, told));
    }
    let (place, text) = (error.instance_location.to_string(), shortened(error.kind.to_string()));
    told.push(if place.is_empty() { text } else { format!("{place}: {text}") });
}

fn shortened(text: String) -> String {
    match text.char_indices().nth(MAX_TEXT) {
        Some((at, _)) => format!("{}...", &text[..at]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
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
        assert_eq!(why, "missing properties 'path'; /lines: must be >=1, but got 0");
    }

    #[test]
    fn amounts_are_not_refused_for_how_they_are_stored() {
        let schemas = Schemas::default();
        let spec =
            spec(json!({ "items": { "multipleOf": 0.01 }, "properties": { "n": { "multipleOf": 5 } } }));
        assert_eq!(schemas.validate(&spec, &json!([19.99, 0.3])), Ok(()));
        assert!(schemas.validate(&spec, &json!({ "n": 7 })).is_err());
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

    /// Any JSON, often with the words of schemas.
    fn json() -> impl Strategy<Value = Value> {
        let word = "type|properties|items|required|enum|const|minimum|multipleOf|pattern|format|minLength|additionalProperties|\
                    allOf|anyOf|not|if|then|\\$ref|\\$defs|\\$id|\\$anchor|\\$dynamicRef|\\$schema|a|b";
        let text =
            "string|object|array|integer|#|#/\\$defs/a|#/properties/a|[(a]|\\(\\?=a\\)|date|http://a/b|a";
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            (-3_i64..4).prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map(word, inner, 0..4)
                    .prop_map(|fields| fields.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn no_schema_and_no_argument_makes_it_panic(schema in json(), input in json()) {
            let _ = Schemas::default().validate(&spec(schema), &input);
        }
    }
}
