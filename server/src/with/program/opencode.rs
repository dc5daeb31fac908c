//! opencode: told by a configuration in a variable, which it merges over its files.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use super::{HEADER, Lookup, Site, TOKEN, Told};
use crate::with::{own, upstream::OwnProvider};

const CONFIG: &str = "OPENCODE_CONFIG_CONTENT";

pub(super) fn told(site: &Site<'_>, _: &[OsString]) -> Result<Told> {
    let mut config = given(site.environment).with_context(|| format!("{CONFIG} is not a JSON object"))?;
    let vendors = [("anthropic", "/v1"), ("openai", "/v1"), ("google", "/v1beta")];
    let vendors = vendors.map(|(name, path)| (name, path.to_owned()));
    let own = site.own.iter().map(|own| (&*own.id, format!("/p/{}", own.door)));
    let token = (site.environment)(TOKEN).filter(|_| site.has_token);
    for (name, path) in vendors.into_iter().chain(own) {
        let mut options = json!({ "baseURL": format!("{}{path}", site.url) });
        if let Some(token) = &token {
            options["headers"] = json!({ HEADER: token });
        }
        merge(&mut config, json!({ "provider": { name: { "options": options } } }));
    }
    Ok(Told { variables: vec![(CONFIG.to_owned(), config.to_string())], ..Told::default() })
}

/// Finds the providers with an address, as it does itself: each place adds to those before it, and replaces what is in both.
pub(super) fn own(environment: &Lookup<'_>, directory: &Path) -> Vec<OwnProvider> {
    let place = |name: &str| environment(name).map(PathBuf::from);
    let both = |folder: PathBuf| ["opencode.json", "opencode.jsonc"].map(|name| folder.join(name));
    let home = place("HOME");
    let global = place("XDG_CONFIG_HOME").or_else(|| Some(home.as_ref()?.join(".config")));
    let global = global.map(|global| global.join("opencode"));
    let is_off = environment("OPENCODE_DISABLE_PROJECT_CONFIG").is_some_and(|it| it == "1" || it == "true");
    let root = directory.ancestors().find(|place| place.join(".git").exists());
    let is_within = |place: &&Path| !is_off && root.is_none_or(|root| place.starts_with(root));
    let project: Vec<&Path> = directory.ancestors().take_while(is_within).collect();
    let outer_first = project.iter().rev().map(|place| place.to_path_buf());
    let hidden = project.iter().copied().chain(home.as_deref()).map(|place| place.join(".opencode"));
    let files = global.iter().map(|global| global.join("config.json"));
    let files = files.chain(global.clone().into_iter().flat_map(both)).chain(place("OPENCODE_CONFIG"));
    let files = files.chain(outer_first.chain(hidden).chain(place("OPENCODE_CONFIG_DIR")).flat_map(both));
    let mut config = json!({});
    for more in files.filter_map(|file| own::read(&file)).chain(given(environment).ok()) {
        merge(&mut config, more);
    }
    let providers = config["provider"].as_object().into_iter().flatten();
    let of = |(id, provider): (&String, &Value)| {
        let address = provider["options"]["baseURL"].as_str().or(provider["api"].as_str())?;
        own::provider("opencode", id, address)
    };
    providers.filter_map(of).collect()
}

/// Returns what its user puts into the variable.
fn given(environment: &Lookup<'_>) -> Result<Value> {
    let given = environment(CONFIG).map(|given| own::parse(&given)).transpose()?.unwrap_or_else(|| json!({}));
    given.is_object().then_some(given).context("not an object")
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
