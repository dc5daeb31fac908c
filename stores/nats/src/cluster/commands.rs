//! Commands: requests on the subject of a node.

use std::{collections::HashMap, time::Duration};

use async_nats::{Client, Message, StatusCode, Subscriber};
use async_trait::async_trait;
use bytes::Bytes;
use everturn_ports::{CommandBus, Incoming, JournalError, NodeId, SendError};
use futures_util::{
    StreamExt as _,
    stream::{BoxStream, unfold},
};
use tokio::time::{sleep, timeout};

use super::parts::{self, Arrived};
use crate::names::Names;

/// Pause before a node that nobody knows is asked again.
const LOOK_AGAIN: Duration = Duration::from_millis(250);

/// Maximum number of requests of which only a part has arrived. Together they are at most as large as one.
const INCOMPLETE: usize = 64;

pub(super) struct NatsCommands {
    client: Client,
    names: Names,
    node: NodeId,
}

impl NatsCommands {
    pub(super) fn new(client: Client, names: Names, node: NodeId) -> Self {
        Self { client, names, node }
    }

    async fn exchange(&self, to: &NodeId, request: &Bytes) -> Result<Bytes, SendError> {
        let inbox = self.client.new_inbox();
        let lost = |_| SendError::Unanswered;
        let mut replies = self.client.subscribe(inbox.clone()).await.map_err(|_| SendError::Unanswered)?;
        let subject = self.names.node(&to.0);
        for (headers, part) in parts::of(request, self.client.max_payload()) {
            let sent =
                self.client.publish_with_reply_and_headers(subject.clone(), inbox.clone(), headers, part);
            sent.await.map_err(|_| SendError::Unanswered)?;
        }
        let mut arrived = Arrived::default();
        while let Some(message) = replies.next().await {
            if message.status == Some(StatusCode::NO_RESPONDERS) {
                return Err(SendError::NoNode);
            }
            if let Some(reply) = arrived.add(message.headers.as_ref(), &message.payload).map_err(lost)? {
                return Ok(reply);
            }
        }
        Err(SendError::Unanswered)
    }
}

#[async_trait]
impl CommandBus for NatsCommands {
    async fn send(&self, to: &NodeId, request: Bytes, within: Duration) -> Result<Bytes, SendError> {
        let sending = async {
            match self.exchange(to, &request).await {
                Err(SendError::NoNode) => {
                    // Perhaps it is just connecting to another server.
                    sleep(LOOK_AGAIN).await;
                    self.exchange(to, &request).await
                }
                done => done,
            }
        };
        timeout(within, sending).await.unwrap_or(Err(SendError::Unanswered))
    }

    async fn receive(&self) -> Result<BoxStream<'static, Incoming>, JournalError> {
        let failed = |error: &dyn std::fmt::Display| {
            JournalError::Storage(format!("NATS: commands cannot be received: {error}"))
        };
        let subscribed = self.client.subscribe(self.names.node(&self.node.0)).await;
        let requests = subscribed.map_err(|error| failed(&error))?;
        super::settle(&self.client).await.map_err(|error| failed(&error))?;
        let receiving = Receiving { client: self.client.clone(), requests, incomplete: HashMap::new() };
        Ok(unfold(receiving, async |mut receiving| Some((receiving.next().await?, receiving))).boxed())
    }
}

struct Receiving {
    client: Client,
    requests: Subscriber,
    /// By the subject of the reply.
    incomplete: HashMap<String, Arrived>,
}

impl Receiving {
    async fn next(&mut self) -> Option<Incoming> {
        loop {
            let Message { reply, headers, payload, .. } = self.requests.next().await?;
            let Some(reply) = reply else { continue };
            let is_another = !self.incomplete.contains_key(reply.as_str());
            let held: usize = self.incomplete.values().map(Arrived::size).sum();
            if is_another && self.incomplete.len() >= INCOMPLETE || held + payload.len() > parts::MAX {
                // Their senders have given up, or will.
                self.incomplete.clear();
            }
            let arrived =
                self.incomplete.entry(reply.to_string()).or_default().add(headers.as_ref(), &payload);
            if matches!(arrived, Ok(None)) {
                continue;
            }
            self.incomplete.remove(reply.as_str());
            let Ok(Some(request)) = arrived else { continue };
            let client = self.client.clone();
            let reply_with = Box::new(move |answer: Bytes| {
                tokio::spawn(async move {
                    for (headers, part) in parts::of(&answer, client.max_payload()) {
                        // Without a reply, the sender gives up after a while.
                        let _ = client.publish_with_headers(reply.clone(), headers, part).await;
                    }
                });
            });
            return Some(Incoming { request, reply: reply_with });
        }
    }
}
