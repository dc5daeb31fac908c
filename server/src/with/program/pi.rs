//! pi: told by an extension, which replaces the addresses of its providers.

use std::ffi::OsString;

use anyhow::Result;

use super::{Site, Told};
use crate::with::file::OwnFile;

pub(super) fn told(site: &Site<'_>, _: &[OsString]) -> Result<Told> {
    let url = site.url;
    let lines = [("anthropic", ""), ("openai", "/v1"), ("google", "/v1beta")].map(|(name, suffix)| {
        format!("  pi.registerProvider({name:?}, {{ baseUrl: \"{url}{suffix}\" }});\n")
    });
    let extension = format!("export default (pi) => {{\n{}}};\n", lines.concat());
    let file = OwnFile::create("everturn.mjs", &extension)?;
    let arguments = vec!["--extension".into(), file.path().into()];
    Ok(Told { arguments, file: Some(file), ..Told::default() })
}
