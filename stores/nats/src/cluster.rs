//! What nodes tell each other, over the same connection as the journal.

mod commands;
mod live;
mod members;
mod parts;

use std::sync::Arc;

use async_nats::{Client, RequestError, RequestErrorKind};
use bytes::Bytes;
use everturn_ports::Cluster;

use crate::{ConnectError, NatsJournal, index::NatsList};
use commands::NatsCommands;
use live::NatsLive;
use members::NatsMembers;

/// Waits until the server knows the subscriptions of this connection. Other servers of a cluster learn of them a little later.
async fn settle(client: &Client) -> Result<(), RequestError> {
    // Any answer shows it, here that nobody listens.
    match client.request(client.new_inbox(), Bytes::new()).await {
        Err(error) if error.kind() != RequestErrorKind::NoResponders => Err(error),
        _ => Ok(()),
    }
}

impl NatsJournal {
    /// Returns the ports of this journal's node, for the orchestrator's `Builder::cluster`. `name` is
    /// shown to people.
    ///
    /// # Errors
    /// When the bucket with the members cannot be created.
    pub async fn cluster(&self, name: &str) -> Result<Cluster, ConnectError> {
        let (names, node) = (self.names().clone(), self.node().clone());
        Ok(Cluster {
            live: Arc::new(NatsLive::new(
                self.client().clone(),
                names.clone(),
                node.clone(),
                self.leader.clone(),
            )),
            list: Arc::new(NatsList::new(self.index.clone())),
            commands: Arc::new(NatsCommands::new(self.client().clone(), names, node.clone())),
            members: Arc::new(NatsMembers::new(&self.leader, node.clone()).await?),
            node,
            name: name.to_owned(),
        })
    }
}
