//! Live events: appends, which the stream publishes again once they are stored, and streamed text.

use async_nats::{
    Client, HeaderMap, Message, Subscriber,
    header::{NATS_LAST_SEQUENCE, NATS_SEQUENCE},
};
use async_trait::async_trait;
use bytes::Bytes;
use everturn_ports::{Appended, Commit, JournalError, LiveBus, LiveEvent, NodeId, Streamed, Version};
use everturn_wire::ConversationId;
use futures_util::{
    StreamExt as _,
    stream::{self, BoxStream},
};
use tokio::sync::mpsc;

use crate::{
    error::failed,
    label::{self, Label},
    leader::Leader,
    names::Names,
    record,
};

/// Maximum number of pieces of text and notices that wait to be sent. More are dropped: the next append contains the text,
/// and notices are repeated or not needed.
const WAITING: usize = 4096;

pub(super) struct NatsLive {
    client: Client,
    names: Names,
    node: NodeId,
    leader: Leader,
    text: mpsc::Sender<(String, Bytes)>,
}

impl NatsLive {
    pub(super) fn new(client: Client, names: Names, node: NodeId, leader: Leader) -> Self {
        let (text, mut waiting) = mpsc::channel::<(String, Bytes)>(WAITING);
        let sender = client.clone();
        tokio::spawn(async move {
            while let Some((subject, payload)) = waiting.recv().await {
                // Only fails if it is too large or the connection is closed. Followers notice the gap.
                let _ = sender.publish(subject, payload).await;
            }
        });
        Self { client, names, node, leader, text }
    }

    async fn subscribe(&self, subject: String) -> Result<Subscriber, JournalError> {
        let subscribed = self.client.subscribe(subject).await;
        subscribed.map_err(|error| failed(&self.leader.place, &error.to_string()))
    }
}

#[async_trait]
impl LiveBus for NatsLive {
    fn stream(&self, id: &ConversationId, streamed: Streamed) {
        let (base, subject) = (streamed.base, self.names.text(&self.node.0, id));
        if let Ok(payload) = record::write_text(base.0, &streamed.events) {
            let _ = self.text.try_send((subject, payload.into()));
        }
    }

    async fn follow(&self, id: &ConversationId) -> Result<BoxStream<'static, LiveEvent>, JournalError> {
        let appends = self.subscribe(self.names.live(id)).await?;
        let text = self.subscribe(self.names.text("*", id)).await?;
        super::settle(&self.client).await.map_err(|error| failed(&self.leader.place, &error.to_string()))?;
        let (own, other) = (self.node.clone(), self.node.clone());
        let appends = appends.filter_map(move |message| std::future::ready(append(&message, &own)));
        let own_text = self.names.text(&other.0, id);
        let text = text.filter_map(move |message| {
            let is_own = message.subject.as_str() == own_text;
            std::future::ready(if is_own { None } else { streamed(&message) })
        });
        // Appends first: text that follows one is of no use before it.
        Ok(stream::select_with_strategy(appends, text, |_: &mut ()| stream::PollNext::Left).boxed())
    }

    fn tell(&self, notice: Bytes) {
        let _ = self.text.try_send((self.names.notices(&self.node.0), notice));
    }

    async fn notices(&self) -> Result<BoxStream<'static, Bytes>, JournalError> {
        let notices = self.subscribe(self.names.notices("*")).await?;
        super::settle(&self.client).await.map_err(|error| failed(&self.leader.place, &error.to_string()))?;
        let own = self.names.notices(&self.node.0);
        let of_others = move |message: &Message| std::future::ready(message.subject.as_str() != own);
        Ok(notices.filter(of_others).map(|message| message.payload).boxed())
    }
}

fn streamed(message: &Message) -> Option<LiveEvent> {
    let (base, events) = record::text(&message.payload).ok()?;
    Some(LiveEvent::Streamed(Streamed { base: Version(base), events }))
}

/// Reads an append of another node.
fn append(message: &Message, own: &NodeId) -> Option<LiveEvent> {
    let headers = message.headers.as_ref()?;
    let owner = label::node(label::id(headers));
    if owner.as_ref() == Some(own) {
        return None;
    }
    // What cannot be read here is read, or explained, when the journal is read.
    Some(read(headers, &message.payload, owner).unwrap_or(LiveEvent::Missed))
}

fn read(headers: &HeaderMap, payload: &Bytes, owner: Option<NodeId>) -> Option<LiveEvent> {
    let label = Label::read(headers).ok()?;
    let number = |name| headers.get::<async_nats::HeaderName>(name)?.as_str().parse::<u64>().ok();
    let Some(head) = label.head.clone() else { return Some(LiveEvent::Removed) };
    if label.parts.is_some() {
        return None;
    }
    let (version, previous) = (number(NATS_SEQUENCE)?, number(NATS_LAST_SEQUENCE)?);
    let commit: Commit = record::commit(payload, head, label.wait).ok()?;
    Some(LiveEvent::Appended(Appended {
        // The first append of a conversation may follow the removal of an earlier one.
        previous: Version(if label.number == 1 { 0 } else { previous }),
        version: Version(version),
        owner: owner?,
        commit: Box::new(commit),
    }))
}
