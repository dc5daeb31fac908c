//! A node's ports.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use everturn_orchestrator::{
    JournalError, LiveBus, LiveEvent, Member, Membership, NodeId, Streamed, kernel::Millis,
};
use everturn_wire::ConversationId;
use futures_util::{
    StreamExt as _,
    stream::{BoxStream, unfold},
};
use tokio::sync::mpsc;

use super::{Follower, LEASE, Shared, State, fault::Way};

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
        if !self.shared.soon(|state| state.cut(&self.node).bus == Way::Open).await {
            return Err(JournalError::Storage("the bus does not answer".to_owned()));
        }
        let (sender, receiver) = mpsc::unbounded_channel();
        let follower = Follower { node: self.node.clone(), sender, late: None };
        self.shared.lock().followers.entry(id.clone()).or_default().push(follower);
        Ok(stream(receiver))
    }

    fn tell(&self, notice: Bytes) {
        self.shared.lock().tell(&self.node, &notice);
    }

    async fn notices(&self) -> Result<BoxStream<'static, Bytes>, JournalError> {
        self.shared.reach(&self.node).await;
        let (sender, receiver) = mpsc::unbounded_channel();
        self.shared.lock().listeners.push((self.node.clone(), sender));
        Ok(stream(receiver))
    }
}

#[async_trait]
impl Membership for NodePorts {
    async fn renew(&self, member: &Member) -> Result<(), JournalError> {
        self.request(|state, now| {
            state.members.insert(self.node.clone(), (member.clone(), now));
        })
        .await
    }

    async fn leave(&self) -> Result<(), JournalError> {
        self.request(|state, _| {
            state.members.remove(&self.node);
        })
        .await
    }

    async fn members(&self) -> Result<Vec<Member>, JournalError> {
        self.request(|state, now| {
            state.members.retain(|_, (_, renewed)| u128::from(now.since(*renewed)) < LEASE.as_millis());
            state.members.values().map(|(member, _)| member.clone()).collect()
        })
        .await
    }
}

impl NodePorts {
    /// Makes a request to the membership. It may take effect although its answer does not arrive.
    async fn request<T: Send>(
        &self,
        request: impl Fn(&mut State, Millis) -> T + Send + Sync,
    ) -> Result<T, JournalError> {
        let Shared { clock, .. } = &*self.shared;
        self.shared.reach(&self.node).await;
        let arrives = {
            let mut state = self.shared.lock();
            let way = state.way_to_members(&self.node);
            let answer = (!way.blocks_out()).then(|| request(&mut state, clock.now()));
            if way == Way::Open
                && let Some(answer) = answer
            {
                return Ok(answer);
            }
            !way.blocks_out()
        };
        let opens = self.shared.soon(|state| state.way_to_members(&self.node) == Way::Open).await;
        match opens {
            // The same request twice is like once.
            true => Ok(request(&mut self.shared.lock(), clock.now())),
            false => Err(JournalError::Storage(format!("the members do not answer (asked: {arrives})"))),
        }
    }
}
