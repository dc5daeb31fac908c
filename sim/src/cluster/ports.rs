//! A node's ports.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use everturn_orchestrator::{
    CommandBus, Incoming, JournalError, LiveBus, LiveEvent, Member, Membership, NodeId, SendError, Streamed,
};
use everturn_wire::ConversationId;
use futures_util::{
    StreamExt as _,
    future::{Either, select},
    stream::{BoxStream, unfold},
};
use tokio::sync::{mpsc, oneshot};

use super::{Follower, LEASE, Shared};

pub(super) struct NodePorts {
    pub(super) node: NodeId,
    pub(super) shared: Arc<Shared>,
}

pub(super) fn stream<T: Send + 'static>(receiver: mpsc::UnboundedReceiver<T>) -> BoxStream<'static, T> {
    unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver))).boxed()
}

#[async_trait]
impl LiveBus for NodePorts {
    fn stream(&self, id: &ConversationId, streamed: Streamed) {
        self.shared.lock().publish(id, &self.node, &LiveEvent::Streamed(streamed));
    }

    async fn follow(&self, id: &ConversationId) -> Result<BoxStream<'static, LiveEvent>, JournalError> {
        self.shared.reach(&self.node).await;
        let (sender, receiver) = mpsc::unbounded_channel();
        let follower = Follower { node: self.node.clone(), sender, late: None };
        self.shared.lock().followers.entry(id.clone()).or_default().push(follower);
        Ok(stream(receiver))
    }
}

#[async_trait]
impl CommandBus for NodePorts {
    async fn send(&self, to: &NodeId, request: Bytes, within: Duration) -> Result<Bytes, SendError> {
        let (shared, from, to) = (self.shared.clone(), self.node.clone(), to.clone());
        // In its own task: a request arrives even if nobody waits for its reply any more.
        let exchange = tokio::spawn(async move {
            let (replied, reply) = oneshot::channel();
            shared.reach(&from).await;
            let inbox = shared.lock().inboxes.get(&to).cloned().ok_or(SendError::NoNode)?;
            // A request to a node that is cut off arrives when it is connected again.
            shared.reach(&to).await;
            let reply_with = Box::new(move |bytes| drop(replied.send(bytes)));
            inbox.send(Incoming { request, reply: reply_with }).map_err(|_| SendError::NoNode)?;
            reply.await.map_err(|_| SendError::Unanswered)
        });
        match select(exchange, self.shared.clock.sleep(within)).await {
            Either::Left((replied, _)) => replied.unwrap_or(Err(SendError::Unanswered)),
            Either::Right(((), _)) => Err(SendError::Unanswered),
        }
    }

    async fn receive(&self) -> Result<BoxStream<'static, Incoming>, JournalError> {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.shared.lock().inboxes.insert(self.node.clone(), sender);
        Ok(stream(receiver))
    }
}

#[async_trait]
impl Membership for NodePorts {
    async fn renew(&self, member: &Member) -> Result<(), JournalError> {
        self.shared.reach(&self.node).await;
        let now = self.shared.clock.now();
        self.shared.lock().members.insert(self.node.clone(), (member.clone(), now));
        Ok(())
    }

    async fn leave(&self) -> Result<(), JournalError> {
        self.shared.reach(&self.node).await;
        self.shared.lock().members.remove(&self.node);
        Ok(())
    }

    async fn members(&self) -> Result<Vec<Member>, JournalError> {
        self.shared.reach(&self.node).await;
        let now = self.shared.clock.now();
        let mut state = self.shared.lock();
        state.members.retain(|_, (_, renewed)| u128::from(now.since(*renewed)) < LEASE.as_millis());
        Ok(state.members.values().map(|(member, _)| member.clone()).collect())
    }
}
