//! Shows subscribers of status changes what other nodes change in the list of conversations.

use std::{sync::Weak, time::Duration};

use everturn_wire::ConversationStatus;
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;

use super::Orchestrator;
use crate::{
    Error, ListEvent, Page,
    cluster::Peers,
    session::Ports,
    status::{PLACES, StatusChanges},
};

/// Pause before the list is read again after the journal failed.
const TRY_AGAIN: Duration = Duration::from_secs(3);

impl Orchestrator {
    /// Announces the changes of other nodes like those of this one, from now on, as long as this orchestrator exists.
    pub(super) async fn follow_list(&self, peers: &Peers) -> Result<(), Error> {
        let changes = peers.cluster.list.follow().await?;
        tokio::spawn(tell(std::sync::Arc::downgrade(&self.ports), changes));
        Ok(())
    }
}

async fn tell(ports: Weak<Ports>, mut changes: BoxStream<'static, ListEvent>) {
    while let Some(event) = changes.next().await {
        let Some(status) = ports.upgrade().map(|ports| ports.status.clone()) else { return };
        match event {
            ListEvent::Changed(listed) => status.tell(&listed.id, listed.head.status),
            ListEvent::Removed(id) => status.tell(&id, ConversationStatus::Closed),
            ListEvent::Missed => tell_all(&ports, &status).await,
        }
    }
}

/// Announces the present statuses of the most recent conversations. Receivers that fall behind read the rest.
async fn tell_all(ports: &Weak<Ports>, status: &StatusChanges) {
    while let Some(ports) = ports.upgrade() {
        let (journal, clock) = (ports.journal.clone(), ports.clock.clone());
        // Not kept alive by a journal that does not answer.
        drop(ports);
        match journal.conversations(Page { limit: Some(PLACES), ..Page::default() }).await {
            Ok(newest) => return newest.iter().for_each(|(id, head)| status.tell(id, head.status)),
            Err(error) => {
                tracing::warn!(%error, "the changes that other servers made to the list cannot be read now");
            }
        }
        clock.sleep(TRY_AGAIN).await;
    }
}
