//! An npm package that carries the binary: `npx everturn`.

use anyhow::Result;
use serde_json::json;

use super::{
    archive::{Tar, gzip},
    contents::Contents,
};

pub(super) fn make(contents: &Contents) -> Result<(String, Vec<u8>)> {
    let mut package = json!({
        "name": "everturn",
        "version": contents.version,
        "description": "LLM agent turns that survive transient provider failures",
        "license": "(MIT OR Apache-2.0)",
        "bin": { "everturn": "bin/everturn" },
        "os": ["linux"],
        "cpu": [contents.machine.node],
    });
    if contents.glibc.is_some() {
        package["libc"] = json!(["glibc"]);
    }
    let mut tar = Tar::new(contents.time);
    tar.file("package/package.json", 0o644, format!("{package:#}\n").as_bytes())?;
    tar.file("package/README.md", 0o644, contents.readme.as_bytes())?;
    for (name, text) in &contents.licences {
        tar.file(&format!("package/{name}"), 0o644, text)?;
    }
    tar.file("package/bin/everturn", 0o755, &contents.binary)?;
    Ok((format!("everturn-{}-npm.tgz", contents.version), gzip(&tar.end(), contents.level)?))
}
