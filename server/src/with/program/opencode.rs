//! opencode: told by a configuration in a variable, which it merges over its files.

use std::ffi::OsString;

use anyhow::{Context as _, Result};
use serde_json::{Map, Value, json};

use super::{Site, Told};

const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

pub(super) fn told(site: &Site<'_>, _: &[OsString]) -> Result<Told> {
    let mut config = match (site.environment)(CONFIG) {
        Some(given) => {
            serde_json::from_str(&given).with_context(|| format!("{CONFIG} is not a JSON object"))?
        }
        None => Map::new(),
    };
    let providers = config.entry("provider").or_insert_with(|| json!({}));
    for (name, suffix) in [("anthropic", "/v1"), ("openai", "/v1"), ("google", "/v1beta")] {
        merge(providers, json!({ name: { "options": { "baseURL": format!("{}{suffix}", site.url) } } }));
    }
    let variables = vec![(CONFIG.to_owned(), Value::Object(config).to_string())];
    Ok(Told { variables, ..Told::default() })
}

/// Adds what is in `more`, and replaces what is in both.
fn merge(to: &mut Value, more: Value) {
    match (to, more) {
        (Value::Object(to), Value::Object(more)) => {
            for (name, value) in more {
                merge(to.entry(name).or_insert(Value::Null), value);
            }
        }
        (to, more) => *to = more,
    }
}
