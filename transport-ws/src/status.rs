//! The status of every conversation that a socket's caller sees.

use std::vec;

use everturn_orchestrator::{Page, StatusChange, View};
use futures_util::{FutureExt as _, future::BoxFuture};
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// Number of conversations whose status is sent again to a peer that missed changes, most recently active first.
const RETOLD: usize = 1024;

/// The status changes for one socket.
pub(crate) struct StatusFeed {
    orchestrator: View,
    changes: Receiver<StatusChange>,
    /// Reads the present statuses, because changes were missed. It is not known which.
    reading: Option<BoxFuture<'static, Vec<StatusChange>>>,
    retold: vec::IntoIter<StatusChange>,
}

impl StatusFeed {
    pub(crate) fn new(orchestrator: View) -> Self {
        let changes = orchestrator.status_changes();
        Self { orchestrator, changes, reading: None, retold: Vec::new().into_iter() }
    }

    /// Returns the next change. A peer that missed changes receives the present statuses instead. Cancel-safe.
    pub(crate) async fn next(&mut self) -> StatusChange {
        loop {
            if let Some(reading) = &mut self.reading {
                self.retold = reading.await.into_iter();
                self.reading = None;
            }
            if let Some(change) = self.retold.next() {
                return change;
            }
            match self.changes.recv().await {
                Ok(change) => {
                    if let Some(conversation_id) = self.orchestrator.shown(&change.conversation_id) {
                        return StatusChange { conversation_id, ..change };
                    }
                }
                Err(RecvError::Lagged(_)) => {
                    // Changes from now on are sent after the statuses read next.
                    self.changes = self.orchestrator.status_changes();
                    self.reading = Some(newest(self.orchestrator.clone()).boxed());
                }
                // The orchestrator holds the sender, and we hold the orchestrator.
                Err(RecvError::Closed) => std::future::pending().await,
            }
        }
    }
}

/// Reads the statuses of the most recently active conversations.
async fn newest(orchestrator: View) -> Vec<StatusChange> {
    match orchestrator.conversations(Page { limit: Some(RETOLD), ..Page::default() }).await {
        Ok((newest, _)) => newest
            .into_iter()
            .map(|listed| StatusChange { conversation_id: listed.id, status: listed.status })
            .collect(),
        Err(error) => {
            tracing::warn!(%error, "a slow socket is not told the status changes it missed");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::HashSet, sync::Arc};

    use everturn_orchestrator::{Caller, Orchestrator, StartTurn, kernel::StreamEvent};
    use everturn_provider::Scripted;
    use everturn_wire::ConversationStatus;

    use super::*;

    #[tokio::test]
    async fn who_missed_changes_is_told_how_things_are() {
        let ends_at_once = Scripted::new([Vec::<StreamEvent>::new()]);
        let orchestrator = Orchestrator::builder()
            .model("test", "model", Arc::new(ends_at_once))
            .schedule(everturn_orchestrator::Exponential { max_retries: 0, ..Default::default() })
            .build();
        let mut feed = StatusFeed::new(orchestrator.seen_by(&Caller::administrator()));
        let mut changes = orchestrator.status_changes();
        let many = 300;
        for n in 0..many {
            let start = StartTurn::new("Hi").conversation(n.to_string().as_str());
            orchestrator.start(start).await.unwrap();
            while changes.recv().await.unwrap().status != ConversationStatus::Idle {}
        }
        let mut told = HashSet::new();
        while told.len() < many {
            let change = feed.next().await;
            assert_eq!(change.status, ConversationStatus::Idle);
            told.insert(change.conversation_id);
        }
    }
}
