//! How to connect to the NATS servers.

use anyhow::{Result, bail};
use everturn_store_nats::{Login, Options};

use crate::config::file::{ClusterTable, Source};

/// Returns how to connect to these servers, by the table.
pub(super) fn of(servers: &[String], table: ClusterTable, source: &Source) -> Result<Options> {
    let mut options = Options::new(servers.iter().map(String::as_str));
    if let Some(prefix) = table.prefix {
        options.prefix = prefix;
    }
    options.replicas = table.replicas;
    options.tls.authorities = table.ca_file.as_deref().map(|path| source.path(path));
    options.tls.required = table.require_tls;
    options.login = match (table.credentials_file, table.user, table.password, table.token) {
        (None, None, None, None) => Login::None,
        (Some(path), None, None, None) => Login::CredentialsFile(source.path(&path)),
        (None, Some(user), Some(password), None) => {
            Login::UserPassword { user, password: password.reveal().to_owned() }
        }
        (None, None, None, Some(token)) => Login::Token(token.reveal().to_owned()),
        _ => bail!("[cluster] takes one of credentials_file, token, or user with password"),
    };
    Ok(options)
}
