//! The NATS servers over which several servers share their conversations.

#[cfg(feature = "nats")]
mod options;

use anyhow::Result;

use super::{
    Environment, Flags,
    file::{ClusterTable, Source},
};

/// How to join a cluster.
#[derive(Debug)]
#[cfg_attr(not(feature = "nats"), allow(dead_code, reason = "this build refuses to join one"))]
pub(crate) struct Cluster {
    #[cfg(feature = "nats")]
    pub(crate) options: everturn_store_nats::Options,
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
        source: &Source,
    ) -> Result<Option<Self>> {
        let servers = servers(flags, environment, &table);
        servers.map(|servers| Self::of(&servers, environment, table, source)).transpose()
    }

    /// Whether there is one.
    pub(super) fn is_configured(flags: &Flags, environment: &Environment<'_>, table: &ClusterTable) -> bool {
        servers(flags, environment, table).is_some()
    }

    #[cfg(feature = "nats")]
    fn of(
        servers: &[String],
        environment: &Environment<'_>,
        mut table: ClusterTable,
        source: &Source,
    ) -> Result<Self> {
        // What precedes an @ is secret.
        let shown = servers.iter().map(|server| server.rsplit('@').next().unwrap_or_default());
        let shown = shown.collect::<Vec<_>>().join(", ");
        let name = environment.get("EVERTURN_NODE").or(table.name.take());
        Ok(Self { options: options::of(servers, table, source)?, shown, name })
    }

    #[cfg(not(feature = "nats"))]
    fn of(_: &[String], _: &Environment<'_>, _: ClusterTable, _: &Source) -> Result<Self> {
        Err(anyhow::anyhow!(crate::absent::absent("NATS", "nats")))
    }
}

/// Returns the NATS servers, if there are any.
fn servers(flags: &Flags, environment: &Environment<'_>, table: &ClusterTable) -> Option<Vec<String>> {
    if flags.data.is_some() || flags.memory || flags.postgres.is_some() {
        // The command line says where conversations are kept instead.
        return None;
    }
    let named = flags.cluster.clone().or_else(|| environment.get("EVERTURN_CLUSTER"));
    let servers = match named {
        Some(named) => named.split(',').map(|server| server.trim().to_owned()).collect(),
        None => table.servers.clone(),
    };
    (!servers.is_empty()).then_some(servers)
}
