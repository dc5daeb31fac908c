//! Generates the documents derived from the wire types, or checks that they are up to date.

use std::{fs, path::Path};

use anyhow::{Context, Result, bail};

const FOLDER: &str = "wire/generated";

/// Writes every generated document that is out of date.
pub(crate) fn write(root: &Path) -> Result<()> {
    for (name, content) in everturn_wire::generated() {
        let path = root.join(FOLDER).join(name);
        if fs::read_to_string(&path).ok().as_ref() == Some(&content) {
            println!("{FOLDER}/{name} is current");
        } else {
            fs::write(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
            println!("{FOLDER}/{name} written");
        }
    }
    Ok(())
}

/// Returns an error if a generated document is out of date.
pub(crate) fn check(root: &Path) -> Result<()> {
    for (name, content) in everturn_wire::generated() {
        let path = root.join(FOLDER).join(name);
        let found = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        if found != content {
            bail!("{FOLDER}/{name} is not current; run `cargo xtask generate` and commit it");
        }
    }
    Ok(())
}
