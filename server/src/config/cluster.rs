//! The NATS servers over which several servers share their conversations.

use std::path::PathBuf;

use anyhow::{Result, bail};
use everturn_store_nats::{Login, Options};

use super::{Environment, Flags, file::ClusterTable};

/// How to join a cluster.
#[derive(Debug)]
pub(crate) struct Cluster {
    pub(crate) options: Options,
    /// The servers, as shown to people.
    pub(crate) shown: String,
    /// The name of this server, as shown to people.
    pub(crate) name: Option<String>,
}

impl Cluster {
    /// Returns how to join the cluster, if there is one.
    pub(super) fn resolve(
        flags: &Flags,
        environment: &Environment<'_>,
        table: ClusterTable,
    ) -> Result<Option<Self>> {
        if flags.data.is_some() || flags.memory || flags.postgres.is_some() {
            // The command line says where conversations are kept instead.
            return Ok(None);
        }
        let named = flags.cluster.clone().or_else(|| environment.get("EVERTURN_CLUSTER"));
        let servers = match named {
            Some(named) => named.split(',').map(|server| server.trim().to_owned()).collect(),
            None => table.servers,
        };
        if servers.is_empty() {
            return Ok(None);
        }
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
        // What precedes an @ is secret.
        let shown = servers.iter().map(|server| server.rsplit('@').next().unwrap_or_default());
        let shown = shown.collect::<Vec<_>>().join(", ");
        Ok(Some(Self { options, shown, name: environment.get("EVERTURN_NODE").or(table.name) }))
    }
}
