//! What a newer version may send: members of unions and words that no definition lists.

use alloc::{borrow::ToOwned, format, string::String, vec::Vec};

use serde_json::{Map, Value, json};

use super::{reference, tag};

/// Adds a member of any other `type` to a union, with the fields that all its members require.
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
        "description": "What only a newer server sends: pass it over. It has further fields.",
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

/// The fields that all members have, but the one that tells them apart.
fn shared<'m>(members: &[&'m Value]) -> Vec<(&'m str, &'m Value)> {
    let fields = members.first().and_then(|first| first["properties"].as_object());
    let all = |name: &str| members.iter().all(|member| member["properties"].get(name).is_some());
    let fields = fields.into_iter().flatten().map(|(name, field)| (name.as_str(), field));
    fields.filter(|(name, _)| *name != "type" && all(name)).collect()
}

fn requires(member: &Value, field: &str) -> bool {
    member["required"].as_array().is_some_and(|required| required.iter().any(|name| name == field))
}

/// Lets any other word be one of these words.
pub(super) fn admit_word(definition: &mut Value) {
    let Some(definition) = definition.as_object_mut() else { return };
    let Some(Value::Array(mut words)) = definition.remove("oneOf") else { return };
    words.push(json!({ "type": "string", "description": "A word that only a newer server sends." }));
    definition.insert("anyOf".to_owned(), words.into());
}
