//! Settings of required reports.

use std::{fs, path::Path};

use anyhow::{Context as _, Result, anyhow, bail};
use everturn_orchestrator::check_report;
use everturn_wire::{RequiredReport, Value};
use toml::Spanned;

use super::file::Source;

/// Resolves `final_report` and `report_attempts`. `of`: their location, for errors.
pub(super) fn resolve(
    required: Option<&Spanned<Value>>,
    attempts: Option<&Spanned<u32>>,
    of: &str,
    source: &Source,
) -> Result<Option<RequiredReport>> {
    let Some(required) = required else {
        return match attempts {
            Some(attempts) => {
                let place = source.place(attempts);
                bail!("{place}: `report_attempts` {of} needs a `final_report`: add one, or remove it")
            }
            None => Ok(None),
        };
    };
    let place = source.place(required);
    let schema = match required.get_ref() {
        Value::String(path) => {
            read(&source.path(path)).with_context(|| format!("{place}: `final_report` {of}"))?
        }
        // As a schema, this would accept everything.
        Value::Object(fields) if fields.contains_key("schema") => {
            bail!("{place}: `final_report` {of} is the schema itself: write it without a `schema` around it")
        }
        schema @ Value::Object(_) => schema.clone(),
        _ => {
            bail!("{place}: `final_report` {of} must be the path of a JSON Schema, or the schema as a table")
        }
    };
    let report = RequiredReport { schema, max_attempts: attempts.map(|attempts| *attempts.get_ref()) };
    let most = RequiredReport::MAX_ATTEMPTS;
    if let Some(attempts) = attempts.filter(|attempts| !(1..=most).contains(attempts.get_ref())) {
        bail!("{}: `report_attempts` {of} must be 1 to {most}", source.place(attempts));
    }
    check_report(&report).map_err(|error| anyhow!("{place}: `final_report` {of}: {error}"))?;
    Ok(Some(report))
}

/// Returns a required report with the schema in a file.
///
/// # Errors
/// Returns an error if the file does not exist or contains no valid schema.
pub(crate) fn required(path: &Path) -> Result<RequiredReport> {
    let report = RequiredReport::new(read(path)?);
    check_report(&report).map_err(|error| {
        anyhow!("{}: {error}; write a JSON Schema such as {{\"type\": \"object\"}}", path.display())
    })?;
    Ok(report)
}

/// Reads a JSON schema from a file.
///
/// # Errors
/// Returns an error that says what is wrong, where, and what to do.
fn read(path: &Path) -> Result<Value> {
    let name = path.display();
    let text = fs::read_to_string(path)
        .with_context(|| format!("cannot read the schema {name}: name a file with a JSON Schema"))?;
    serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or_default();
        anyhow!("{name}:{line}:{column}: not JSON ({what}): write the JSON Schema of the report")
    })
}
