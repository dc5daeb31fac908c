//! Conversations that several servers share over NATS.

use std::sync::Arc;

use anyhow::Result;
use everturn_orchestrator::{Builder, Cluster, Journal, StateStore};
use everturn_store_nats::{NatsJournal, NatsState};
use everturn_terminal::Source;

use crate::config;

/// Conversations that several servers share.
#[derive(Clone)]
pub(crate) struct Shared {
    journal: Arc<NatsJournal>,
    state: Arc<NatsState>,
    cluster: Cluster,
}

impl Shared {
    /// Joins the cluster. `address`: names this server if nothing else does.
    pub(super) async fn join(cluster: &config::Cluster, address: &str) -> Result<Self> {
        let journal = NatsJournal::connect(&cluster.options).await?;
        let name = cluster.name.clone().unwrap_or_else(|| address.to_owned());
        let (state, cluster) = (journal.state().await?, journal.cluster(&name).await?);
        Ok(Self { journal: Arc::new(journal), state: Arc::new(state), cluster })
    }

    /// Returns where the conversations are, without joining.
    pub(super) async fn source(cluster: &config::Cluster) -> Result<Source> {
        let journal = Arc::new(NatsJournal::connect(&cluster.options).await?);
        let state = Arc::new(journal.state().await?);
        Ok(Source::Shared(everturn_terminal::Shared { journal, state: Some(state) }))
    }

    pub(super) fn stores(&self) -> (Arc<dyn Journal>, Arc<dyn StateStore>) {
        (self.journal.clone(), self.state.clone())
    }

    pub(super) fn join_in(&self, builder: Builder) -> Builder {
        builder.cluster(self.cluster.clone())
    }
}
