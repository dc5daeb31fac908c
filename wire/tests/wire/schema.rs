//! The samples match the schema, and cover it.

use std::collections::{BTreeMap, BTreeSet};

use everturn_wire::json_schema;
use jsonschema::Validator;
use serde_json::{Value, json};

use crate::sample::families;

fn validator(name: &str) -> Validator {
    let mut document = json_schema();
    document["$ref"] = format!("#/$defs/{name}").into();
    jsonschema::draft202012::new(&document).unwrap()
}

#[test]
fn the_document_is_a_schema_of_its_draft() {
    assert!(jsonschema::meta::validate(&json_schema()).is_ok());
}

#[test]
fn every_sample_is_valid() {
    for family in families() {
        let validator = validator(family.name);
        for value in family.values() {
            let wrong: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
            assert!(wrong.is_empty(), "{} {value}: {wrong:?}", family.name);
        }
    }
}

#[test]
fn a_field_is_either_required_or_may_be_absent_but_never_null() {
    for family in families().iter().filter(|family| family.name != "ConversationList") {
        let validator = validator(family.name);
        for value in family.values() {
            let fields: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
            // Only in a change of settings, null has a meaning: it resets a field.
            let is_change = family.name == "RetryPatch" || value["type"] == "retry.set";
            let may_be_null = |field: &str| {
                matches!(field, "input" | "report")
                    || (field == "content"
                        && (family.name == "QuestionAnswer" || value["type"] == "question.answer"))
                    || (is_change && !matches!(field, "type" | "conversationId"))
            };
            for field in fields.iter().filter(|field| !may_be_null(field)) {
                let mut broken = value.clone();
                broken[field] = Value::Null;
                assert!(!validator.is_valid(&broken), "{} {broken}", family.name);
            }
        }
    }
}

/// The fields that one sample of a definition has.
type Fields = BTreeSet<String>;

/// Every definition of an object has a sample with all of its fields and one with only the required ones.
#[test]
fn the_samples_show_every_field_and_every_absence() {
    let document = json_schema();
    let mut seen: BTreeMap<String, BTreeSet<Fields>> = BTreeMap::new();
    for family in families() {
        for value in family.values() {
            visit(&document, &json!({ "$ref": format!("#/$defs/{}", family.name) }), &value, &mut seen);
        }
    }
    let objects = document["$defs"].as_object().unwrap().iter().filter(|(_, d)| d["type"] == "object");
    for (name, definition) in objects {
        let all: Fields = definition["properties"].as_object().unwrap().keys().cloned().collect();
        let required: Fields = serde_json::from_value(definition["required"].clone()).unwrap_or_default();
        let shown = seen.get(name).unwrap_or_else(|| panic!("{name} has no sample"));
        assert!(shown.contains(&all), "{name} has no sample with {all:?}");
        assert!(shown.contains(&required), "{name} has no sample with only {required:?}");
    }
}

/// Walks a value along its schema and records which fields each defined object has.
fn visit(document: &Value, schema: &Value, value: &Value, seen: &mut BTreeMap<String, BTreeSet<Fields>>) {
    let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) else {
        for item in value.as_array().into_iter().flatten() {
            visit(document, &schema["items"], item, seen);
        }
        for field in value.as_object().into_iter().flat_map(|fields| fields.values()) {
            visit(document, &schema["additionalProperties"], field, seen);
        }
        return;
    };
    let definition = &document["$defs"][name];
    if let Some(members) = definition["oneOf"].as_array() {
        let names: Vec<Option<&Value>> = members.iter().map(|member| tag(document, member)).collect();
        // The member without a name stands for additions of a newer server.
        let name = names.iter().find(|name| **name == value.get("type")).unwrap_or(&None);
        for (member, _) in members.iter().zip(&names).filter(|(_, known)| *known == name) {
            visit(document, member, value, seen);
        }
    } else if let Some(fields) = value.as_object() {
        seen.entry(name.to_owned()).or_default().insert(fields.keys().cloned().collect());
        for (field, value) in fields {
            visit(document, &definition["properties"][field], value, seen);
        }
    } else {
        visit(document, &json!({ "items": definition["items"] }), value, seen);
    }
}

/// Returns the `type` of a union's member; `None` for a plain string.
fn tag<'a>(document: &'a Value, member: &Value) -> Option<&'a Value> {
    let name = member["$ref"].as_str()?.strip_prefix("#/$defs/")?;
    document["$defs"][name]["properties"]["type"].get("const")
}
