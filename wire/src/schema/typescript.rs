//! TypeScript declarations, generated from the JSON Schema.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use serde_json::Value;

use super::{json_schema, reference};

const HEADER: &str = "\
// Generated from the Rust types by `cargo xtask generate`. Do not edit.
//
// An optional field is absent if unknown, never null. Unions are discriminated by `type`:
// `switch (event.type) { case \"provider-retry\": event.delayMs; }`. Additions of a newer server end up in the `default`
// case, as an `UnknownEvent`, `UnknownChunk` or `UnknownMessage`. Skip them.

/** A `type` that is not listed here. No literal has this type, so comparing with a listed `type` excludes it. */
export type UnknownType = `${string & { readonly newer: true }}`;
";

/// Returns the declarations of all types, for a `.d.ts` file.
pub fn typescript() -> String {
    let document = json_schema();
    let mut text = HEADER.to_string();
    for (name, schema) in document["$defs"].as_object().into_iter().flatten() {
        text.push('\n');
        text += &doc(schema, "");
        text += &match schema["properties"] {
            Value::Object(_) => format!("export interface {name} {{\n{}}}\n", fields(schema, "  ")),
            _ => format!("export type {name} ={};\n", spaced(&expression(schema, ""))),
        };
    }
    text
}

/// Formats a description as a doc comment.
fn doc(schema: &Value, indent: &str) -> String {
    let Some(description) = schema["description"].as_str() else { return String::new() };
    let safe = description.replace("*/", "*\\/");
    let lines: Vec<&str> = safe.lines().collect();
    match lines.as_slice() {
        [line] => format!("{indent}/** {line} */\n"),
        lines => {
            let body: String = lines.iter().map(|line| format!("{indent} * {line}\n")).collect();
            format!("{indent}/**\n{body}{indent} */\n").replace(" * \n", " *\n")
        }
    }
}

/// Formats the fields of an object: the required ones in the order they are sent, then the optional ones.
fn fields(schema: &Value, indent: &str) -> String {
    let required: Vec<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = || schema["properties"].as_object().into_iter().flatten();
    let optional = properties().map(|(name, _)| name.as_str()).filter(|name| !required.contains(name));
    let field = |name: &str, mark: &str| {
        let schema = &schema["properties"][name];
        format!("{}{indent}{name}{mark}: {};\n", doc(schema, indent), expression(schema, indent))
    };
    let first: String = required.iter().map(|name| field(name, "")).collect();
    optional.fold(first, |text, name| text + &field(name, "?"))
}

/// Formats a schema as a type expression.
fn expression(schema: &Value, indent: &str) -> String {
    if let Some(name) = reference(schema.get("$ref")) {
        return name.to_string();
    }
    if schema.get("not").is_some() {
        return "UnknownType".to_string();
    }
    if let Some(literal) = schema.get("const") {
        return literal.to_string();
    }
    if let Some(literals) = schema["enum"].as_array() {
        return literals.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    if let Some([value, null]) = schema["oneOf"].as_array().map(Vec::as_slice)
        && null["type"] == "null"
    {
        return format!("{} | null", expression(value, indent));
    }
    if let Some(members) = schema["oneOf"].as_array().or(schema["anyOf"].as_array()) {
        return union(members, indent);
    }
    match schema["type"].as_str() {
        Some("string") => "string".to_string(),
        Some("boolean") => "boolean".to_string(),
        Some("integer" | "number") => "number".to_string(),
        Some("array") => format!("Array<{}>", expression(&schema["items"], indent)),
        Some("object") => format!("Record<string, {}>", expression(&schema["additionalProperties"], indent)),
        _ => "unknown".to_string(),
    }
}

/// Puts a union on its own lines, and anything else after a space.
fn spaced(expression: &str) -> String {
    if expression.starts_with('\n') { expression.to_string() } else { format!(" {expression}") }
}

fn union(members: &[Value], indent: &str) -> String {
    let open = members.len() > 1 && members.iter().any(is_any_string);
    let inner = format!("{indent}  ");
    let member = |member: &Value| {
        // Keeps the known values in editor completion; a plain `string` would absorb them.
        let any = if open && is_any_string(member) {
            "(string & {})".to_string()
        } else {
            expression(member, &inner)
        };
        format!("\n{}{inner}| {any}", doc(member, &inner))
    };
    members.iter().map(member).collect()
}

fn is_any_string(schema: &Value) -> bool {
    schema["type"] == "string" && schema.get("const").is_none()
}
