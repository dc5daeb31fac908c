//! The index as the port that tells other nodes' changes to the list.

use std::sync::Arc;

use async_trait::async_trait;
use everturn_ports::{JournalError, ListBus, ListEvent, Wait};
use everturn_wire::ConversationId;
use futures_util::{
    StreamExt as _,
    stream::{BoxStream, unfold},
};
use tokio::sync::broadcast::error::RecvError;

use super::Index;

/// Other nodes' changes to the list, as the index sees them.
pub(crate) struct NatsList(Arc<Index>);

impl NatsList {
    pub(crate) fn new(index: Arc<Index>) -> Self {
        Self(index)
    }
}

#[async_trait]
impl ListBus for NatsList {
    async fn follow(&self) -> Result<BoxStream<'static, ListEvent>, JournalError> {
        // Subscribed while it is known what the index contains, so that nothing after it is missed.
        let events = self.0.read(|_| self.0.shared.events()).await?;
        let changes = unfold(events, async |mut events| {
            let event = match events.recv().await {
                Ok(event) => event,
                Err(RecvError::Lagged(_)) => ListEvent::Missed,
                Err(RecvError::Closed) => return None,
            };
            Some((event, events))
        });
        Ok(changes.boxed())
    }

    fn waits(&self, ids: &[&ConversationId]) -> Vec<(ConversationId, Wait)> {
        self.0.shared.lock().projection.waits(ids)
    }
}
