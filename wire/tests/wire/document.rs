//! The generated documents are up to date and have no dangling references.

use std::{fs, path::Path};

use everturn_wire::{asyncapi, document, generated, openapi};
use serde_json::Value;

#[test]
fn generated_files_are_current() {
    for (name, content) in generated() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("generated").join(name);
        let found = fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == content,
            "wire/generated/{name} is not current; run `cargo xtask generate` and commit it"
        );
    }
}

#[test]
fn the_served_documents_are_the_generated_ones() {
    let served = [document::SCHEMA, document::TYPESCRIPT, document::OPENAPI, document::ASYNCAPI];
    assert_eq!(served.map(str::to_owned), generated().map(|(_, content)| content));
}

#[test]
fn every_reference_resolves() {
    for document in [openapi(), asyncapi()] {
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 50);
        for reference in references {
            let pointer = reference.strip_prefix('#').expect("references stay inside the document");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }
}

fn collect<'a>(value: &'a Value, references: &mut Vec<&'a str>) {
    match value {
        Value::Object(fields) => {
            references.extend(fields.get("$ref").and_then(Value::as_str));
            fields.values().for_each(|field| collect(field, references));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, references)),
        _ => {}
    }
}
