//! The exact names and types on the wire.

use everturn_wire::{AgentEvent, Command};
use serde_json::Value;

use crate::sample::{Family, families, frame::commands};

/// The events that existing clients know. They can read no other type.
const BASE: [&str; 15] = [
    "status",
    "user-message",
    "turn-start",
    "text-delta",
    "reasoning-delta",
    "tool-call",
    "tool-output",
    "tool-result",
    "usage",
    "step-complete",
    "provider-retry",
    "error",
    "steering",
    "done",
    "turn-sealed",
];

#[test]
fn every_type_has_its_exact_json() {
    let lines =
        |family: &Family| family.lines.iter().map(|line| format!("{} {line}\n", family.name)).collect();
    let text: Vec<String> = families().iter().map(lines).collect();
    insta::assert_snapshot!("wire", text.join("\n"));
}

#[test]
fn every_command_is_read_as_it_is_written() {
    for command in commands() {
        let frame = serde_json::to_string(&command).unwrap();
        assert_eq!(Command::parse(&frame).as_ref(), Ok(&command), "{frame}");
    }
}

#[test]
fn unknown_fields_are_ignored_at_every_depth() {
    for family in families() {
        for (line, mut value) in family.lines.iter().zip(family.values()) {
            add_unknown_field(&mut value);
            assert_eq!(&(family.rewrite)(&value.to_string()), line);
        }
    }
}

/// Adds a field to every object whose fields the wire format defines.
fn add_unknown_field(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            let free = |name: &str| {
                matches!(
                    name,
                    "input"
                        | "content"
                        | "inputSchema"
                        | "schema"
                        | "report"
                        | "modelInfo"
                        | "data"
                        | "fallbackChains"
                )
            };
            fields.iter_mut().filter(|(name, _)| !free(name)).for_each(|(_, field)| add_unknown_field(field));
            fields.insert("addedLater".into(), serde_json::json!({ "deep": [1] }));
        }
        Value::Array(items) => items.iter_mut().for_each(add_unknown_field),
        _ => {}
    }
}

#[test]
fn unknown_values_are_absent_never_null() {
    let families = families();
    let others = families.iter().filter(|family| !matches!(family.name, "AgentEvent" | "RetryPatch"));
    // A change of settings has nulls, which reset fields.
    for line in others.flat_map(|family| &family.lines).filter(|line| !line.contains("retry.set\"")) {
        assert!(!line.contains("null"), "{line}");
    }
}

#[test]
fn only_the_fifteen_base_events_go_to_every_subscriber() {
    let events = families().into_iter().filter(|family| family.name == "AgentEvent");
    for line in events.flat_map(|family| family.lines) {
        let event: AgentEvent = serde_json::from_str(&line).unwrap();
        let value: Value = serde_json::from_str(&line).unwrap();
        // What is told again is for those who discarded it.
        let base = BASE.contains(&value["type"].as_str().unwrap()) && value["again"].is_null();
        assert_eq!(event.body.is_extension(), !base, "{line}");
    }
}

#[test]
fn every_command_is_parsed_and_listed() {
    let commands = families().into_iter().find(|family| family.name == "Command").unwrap();
    let mut seen = Vec::new();
    for (line, value) in commands.lines.iter().zip(commands.values()) {
        assert_eq!(serde_json::to_string(&Command::parse(line).unwrap()).unwrap(), *line);
        seen.push(value["type"].as_str().unwrap().to_owned());
    }
    seen.dedup();
    assert_eq!(seen, Command::TYPES);
}
