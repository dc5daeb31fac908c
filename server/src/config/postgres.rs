//! The Postgres database that keeps conversations.

use std::{fs, path::PathBuf};

use anyhow::{Context as _, Result, bail};
use everturn_store_postgres::Options;

use super::{
    Environment, Flags, Hidden,
    file::{PostgresTable, Source},
    key,
};

/// How to use the database.
#[derive(Debug)]
pub(crate) struct Postgres {
    pub(crate) options: Options,
    /// What must not be printed.
    pub(super) secrets: Vec<Hidden>,
    /// The file with the password.
    pub(super) secret_file: Option<PathBuf>,
}

impl Postgres {
    /// Returns how to use the database, if there is one.
    pub(super) fn resolve(
        flags: &Flags,
        environment: &Environment<'_>,
        table: PostgresTable,
        source: &Source,
    ) -> Result<Option<Self>> {
        if flags.data.is_some() || flags.memory || flags.cluster.is_some() {
            // The command line says where conversations are kept instead.
            return Ok(None);
        }
        let named = flags.postgres.clone().or_else(|| environment.get("EVERTURN_POSTGRES"));
        let of_table = table.url.as_ref().map(|url| url.reveal().to_owned());
        let Some(url) = named.or(of_table) else {
            if table.is_empty() {
                return Ok(None);
            }
            bail!("[postgres] has no `url`: write it as postgres://user@host:5432/database");
        };
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
        Ok(Some(Self { options, secrets: password.into_iter().chain(of_url).collect(), secret_file }))
    }
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

/// Whether the table contains a password.
pub(super) fn has_secret(table: &PostgresTable) -> bool {
    let of_url = table.url.as_ref().and_then(|url| password_of(url.reveal()));
    table.password.is_some() || of_url.is_some()
}

/// Returns the password in a URL.
fn password_of(url: &str) -> Option<Hidden> {
    let (login, _) = url.split_once("://")?.1.rsplit_once('@')?;
    Hidden::new(login.split_once(':')?.1)
}
