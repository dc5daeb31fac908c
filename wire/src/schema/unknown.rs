//! Additions of a newer version: members of unions and enum values that no definition lists.

use alloc::{borrow::ToOwned, format, string::String, vec::Vec};

use serde_json::{Map, Value, json};

use super::{reference, tag};

/// Adds a member with any other `type` to a union, with the fields that all its members require.
pub(super) fn admit_member(definitions: &mut Map<String, Value>, union: &str, suffix: &str) {
    let members: Vec<&Value> = definitions[union]["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|member| definitions.get(reference(member.get("$ref"))?))
        .collect();
    let known: Vec<&str> = members.iter().map(|member| tag(member)).collect();
    let mut properties = json!({ "type": { "type": "string", "not": { "enum": known } } });
    let mut required = Vec::from(["type"]);
    for (name, field) in shared(&members) {
        properties[name] = field.clone();
        if members.iter().all(|member| requires(member, name)) {
            required.push(name);
        }
    }
    let member = json!({
        "description": "An addition of a newer server. Skip it. It has further fields.",
        "type": "object",
        "properties": properties,
        "required": required,
    });
    let name = format!("Unknown{suffix}");
    if let Some(members) = definitions[union]["oneOf"].as_array_mut() {
        members.push(json!({ "$ref": format!("#/$defs/{name}") }));
    }
    definitions.insert(name, member);
}

/// Returns the fields that all members have, except `type`.
fn shared<'m>(members: &[&'m Value]) -> Vec<(&'m str, &'m Value)> {
    let fields = members.first().and_then(|first| first["properties"].as_object());
    let all = |name: &str| members.iter().all(|member| member["properties"].get(name).is_some());
    let fields = fields.into_iter().flatten().map(|(name, field)| (name.as_str(), field));
    fields.filter(|(name, _)| *name != "type" && all(name)).collect()
}

fn requires(member: &Value, field: &str) -> bool {
    member["required"].as_array().is_some_and(|required| required.iter().any(|name| name == field))
}

/// Lets an enum have any other value.
pub(super) fn admit_word(definition: &mut Value) {
    let Some(definition) = definition.as_object_mut() else { return };
    let Some(Value::Array(mut words)) = definition.remove("oneOf") else { return };
    words.push(json!({ "type": "string", "description": "A value from a newer server." }));
    definition.insert("anyOf".to_owned(), words.into());
}
