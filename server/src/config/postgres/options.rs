//! How to connect to the database, and its password.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use everturn_store_postgres::Options;

use super::{Postgres, password_of};
use crate::config::{
    Environment, Hidden,
    file::{PostgresTable, Source},
    key,
};

/// Returns how to use the database at this URL.
pub(super) fn of(
    url: String,
    table: PostgresTable,
    environment: &Environment<'_>,
    source: &Source,
) -> Result<Postgres> {
    let (password, secret_file) = password(&table, environment, source)?;
    let of_url = password_of(&url);
    if password.is_some() && of_url.is_some() {
        bail!("[postgres] has a password, and the URL of Postgres has one, too: keep one of them");
    }
    let mut options = Options::new(url);
    options.password = password.as_ref().map(|password| password.reveal().to_owned());
    options.authorities = table.ca_file.as_deref().map(|path| source.path(path));
    if let Some(schema) = table.schema {
        options.schema = schema;
    }
    Ok(Postgres { options, secrets: password.into_iter().chain(of_url).collect(), secret_file })
}

/// Returns the password of the table, and the file that contains it.
fn password(
    table: &PostgresTable,
    environment: &Environment<'_>,
    source: &Source,
) -> Result<(Option<Hidden>, Option<PathBuf>)> {
    match (&table.password, &table.password_env, &table.password_file) {
        (None, None, None) => Ok((None, None)),
        (Some(password), None, None) => {
            let password = Hidden::new(password.reveal()).context("[postgres] `password` is empty")?;
            Ok((Some(password), None))
        }
        (None, Some(name), None) => match environment.get(name).as_deref().and_then(Hidden::new) {
            Some(password) => Ok((Some(password), None)),
            None if key::is_variable_name(name) => {
                bail!("the password of Postgres is missing: set the environment variable {name}")
            }
            None => bail!(
                "the value of `password_env` does not look like a variable name: write the name of the environment \
                 variable that holds the password, never the password itself"
            ),
        },
        (None, None, Some(name)) => {
            let path = source.path(name);
            let shown = if key::is_surely_path(name) { name } else { "that `password_file` names" };
            let text = fs::read_to_string(&path);
            let text =
                text.with_context(|| format!("cannot read the password of Postgres from the file {shown}"))?;
            let password = Hidden::new(&text).with_context(|| format!("the file {shown} is empty"))?;
            Ok((Some(password), Some(path)))
        }
        _ => bail!("[postgres] takes one of password, password_env, password_file"),
    }
}
