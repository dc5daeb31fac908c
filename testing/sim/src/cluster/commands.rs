//! Commands between nodes.

use std::{
    future,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use everturn_orchestrator::{CommandBus, Incoming, JournalError, NodeId, SendError};
use futures_util::{
    future::{Either, select},
    stream::BoxStream,
};
use tokio::sync::{mpsc, oneshot};

use super::{
    Shared,
    ports::{NodePorts, stream},
};

#[async_trait]
impl CommandBus for NodePorts {
    async fn send(&self, to: &NodeId, request: Bytes, within: Duration) -> Result<Bytes, SendError> {
        // In its own task: a request arrives even if nobody waits for its reply any more.
        let exchange = tokio::spawn(exchange(self.shared.clone(), self.node.clone(), to.clone(), request));
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

/// Carries a request to a node, and its reply back. What meets a blocked way goes on when it is open again.
async fn exchange(shared: Arc<Shared>, from: NodeId, to: NodeId, request: Bytes) -> Result<Bytes, SendError> {
    shared.reach(&from).await;
    shared.until(|state| !state.cut(&from).bus.blocks_out()).await;
    let (inbox, copies) = {
        let mut state = shared.lock();
        let inbox = state.inboxes.get(&to).cloned().ok_or(SendError::NoNode)?;
        let cut = state.cut(&to);
        if cut.refuses && cut.bus.blocks_in() {
            return Err(SendError::NoNode);
        }
        (inbox, state.copies())
    };
    if copies.is_empty() {
        // Nobody will ever say anything.
        future::pending::<()>().await;
    }
    let (replied, reply) = oneshot::channel();
    let replied = Arc::new(Mutex::new(Some(replied)));
    for ms in copies {
        tokio::spawn(deliver(
            shared.clone(),
            to.clone(),
            inbox.clone(),
            request.clone(),
            ms,
            replied.clone(),
        ));
    }
    drop(replied);
    let reply = reply.await.unwrap_or(Err(SendError::Unanswered))?;
    shared.until(|state| !state.cut(&to).bus.blocks_out() && !state.cut(&from).bus.blocks_in()).await;
    let delay = shared.lock().reply();
    match delay {
        None => future::pending().await,
        Some(0) => Ok(reply),
        Some(ms) => {
            shared.clock.sleep(Duration::from_millis(ms)).await;
            Ok(reply)
        }
    }
}

/// The place for the first reply.
type First = Arc<Mutex<Option<oneshot::Sender<Result<Bytes, SendError>>>>>;

/// Delivers a copy of a request after this many milliseconds.
async fn deliver(
    shared: Arc<Shared>,
    to: NodeId,
    inbox: mpsc::UnboundedSender<Incoming>,
    request: Bytes,
    ms: u64,
    first: First,
) {
    if ms > 0 {
        shared.clock.sleep(Duration::from_millis(ms)).await;
    }
    shared.until(|state| !state.cut(&to).bus.blocks_in()).await;
    shared.reach(&to).await;
    let replies = first.clone();
    let reply = Box::new(move |bytes| answer(&replies, Ok(bytes)));
    if inbox.send(Incoming { request, reply }).is_err() {
        answer(&first, Err(SendError::NoNode));
    }
}

fn answer(first: &First, reply: Result<Bytes, SendError>) {
    if let Some(first) = first.lock().unwrap_or_else(PoisonError::into_inner).take() {
        drop(first.send(reply));
    }
}
