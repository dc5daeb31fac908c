//! pi: told by an extension, which replaces the addresses of its providers.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
};

use anyhow::Result;
use serde_json::Value;

use super::{HEADER, Lookup, Site, TOKEN, Told};
use crate::with::{file::OwnFile, own, upstream::OwnProvider};

pub(super) fn told(site: &Site<'_>, _: &[OsString]) -> Result<Told> {
    let url = site.url;
    let vendors = [("anthropic", ""), ("openai", "/v1"), ("google", "/v1beta")];
    let vendors = vendors.map(|(name, path)| (name, path.to_owned()));
    let own = site.own.iter().map(|own| (&*own.id, format!("/p/{}", own.door)));
    // pi takes it for the name of a variable.
    let headers =
        if site.has_token { format!(", headers: {{ {HEADER:?}: {TOKEN:?} }}") } else { String::new() };
    let lines = vendors.into_iter().chain(own).map(|(name, path)| {
        format!("  pi.registerProvider({name:?}, {{ baseUrl: \"{url}{path}\"{headers} }});\n")
    });
    let extension = format!("export default (pi) => {{\n{}}};\n", lines.collect::<String>());
    let file = OwnFile::create("everturn.mjs", &extension)?;
    let arguments = vec!["--extension".into(), file.path().into()];
    Ok(Told { arguments, file: Some(file), ..Told::default() })
}

/// Finds the providers with an address.
pub(super) fn own(environment: &Lookup<'_>, _: &Path) -> Vec<OwnProvider> {
    let directory = environment("PI_CODING_AGENT_DIR").map(PathBuf::from);
    let directory = directory.or_else(|| Some(PathBuf::from(environment("HOME")?).join(".pi/agent")));
    let models =
        directory.and_then(|directory| own::read(&directory.join("models.json"))).unwrap_or_default();
    let of = |(id, provider): (&String, &Value)| {
        let address = provider["baseUrl"].as_str()?;
        // An extension can only give them one.
        if provider["models"].as_array().into_iter().flatten().any(|model| model["baseUrl"].is_string()) {
            own::say(&format!(
                "pi's provider {id:?} is called directly: its models have addresses of their own"
            ));
            return None;
        }
        own::provider("pi", id, address)
    };
    models["providers"].as_object().into_iter().flatten().filter_map(of).collect()
}
