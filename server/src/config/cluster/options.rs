//! How to connect to the NATS servers.

use std::path::PathBuf;

use anyhow::{Result, bail};
use everturn_store_nats::{Login, Options};

use crate::config::file::ClusterTable;

/// Returns how to connect to these servers, by the table.
pub(super) fn of(servers: &[String], table: ClusterTable) -> Result<Options> {
    let mut options = Options::new(servers.iter().map(String::as_str));
    if let Some(prefix) = table.prefix {
        options.prefix = prefix;
    }
    options.replicas = table.replicas;
    options.tls.authorities = table.ca_file.map(PathBuf::from);
    options.tls.required = table.require_tls;
    options.login = match (table.credentials_file, table.user, table.password, table.token) {
        (None, None, None, None) => Login::None,
        (Some(path), None, None, None) => Login::CredentialsFile(path.into()),
        (None, Some(user), Some(password), None) => {
            Login::UserPassword { user, password: password.reveal().to_owned() }
        }
        (None, None, None, Some(token)) => Login::Token(token.reveal().to_owned()),
        _ => bail!("[cluster] takes one of credentials_file, token, or user with password"),
    };
    Ok(options)
}
