//! Reading the last append of every conversation, without its content.

use std::collections::{BTreeMap, HashMap};

use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use everturn_orchestrator::{Head, JournalError, ListCursor, Page, Wait, kernel::Millis};
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;
use tokio::time;

use crate::{entry::Entry, error::failed, journal::NatsJournal, label::Label, leader::Leader};

/// A conversation in the order of the list: latest activity first, then by id.
type Rank = (std::cmp::Reverse<Millis>, ConversationId);

impl NatsJournal {
    /// Costs one small message per conversation, about half a second per 100,000, and a request for each of the page.
    /// Needs memory for the page only.
    pub(crate) async fn list(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        let limit = page.limit.unwrap_or(usize::MAX);
        let mut ranks: HashMap<ConversationId, Rank> = HashMap::new();
        let mut listed: BTreeMap<Rank, (Head, String)> = BTreeMap::new();
        let each = |id: ConversationId, _version: u64, label: Label| {
            // Appended to while it was read: the later one counts.
            if let Some(rank) = ranks.remove(&id) {
                listed.remove(&rank);
            }
            let Some(head) = label.head.filter(|head| is_on(&page, &id, head)) else { return };
            let rank = (std::cmp::Reverse(head.last_activity_at), id.clone());
            ranks.insert(id, rank.clone());
            listed.insert(rank, (head, label.born));
            if listed.len() > limit
                && let Some(((_, id), _)) = listed.pop_last()
            {
                ranks.remove(&id);
            }
        };
        scan(&self.leader, each).await?;
        drop(ranks);
        let titled = listed.into_iter().map(|((_, id), (mut head, born))| async move {
            self.retitle(&id, &born, &mut head).await?;
            Ok((id, head))
        });
        // In order, several at a time.
        let titled: Vec<Result<_, JournalError>> =
            futures_util::stream::iter(titled).buffered(64).collect().await;
        titled.into_iter().collect()
    }

    /// Costs one small message per conversation, about half a second per 100,000. Needs memory for the result only.
    pub(crate) async fn list_unsealed(
        &self,
        before: Millis,
    ) -> Result<Vec<(ConversationId, Wait)>, JournalError> {
        let mut waiting: HashMap<ConversationId, Wait> = HashMap::new();
        let each = |id: ConversationId, _version: u64, label: Label| {
            let due = label.wait.filter(|wait| wait.due_at().is_some_and(|at| at < before));
            match due {
                Some(wait) => waiting.insert(id, wait),
                None => waiting.remove(&id),
            };
        };
        scan(&self.leader, each).await?;
        let mut waiting: Vec<_> = waiting.into_iter().collect();
        waiting.sort_by(|(a, wait), (b, other)| wait.due_at().cmp(&other.due_at()).then_with(|| a.cmp(b)));
        Ok(waiting)
    }
}

/// Whether a conversation is listed after the page's cursor.
fn is_on(page: &Page, id: &ConversationId, head: &Head) -> bool {
    let is_after = |after: &ListCursor| {
        (std::cmp::Reverse(head.last_activity_at), id)
            > (std::cmp::Reverse(after.last_activity_at), &after.id)
    };
    !id.is_ephemeral() && page.after.as_ref().is_none_or(is_after)
}

/// Reads the last append of every conversation. One that changes meanwhile may come again.
pub(crate) async fn scan(
    leader: &Leader,
    mut each: impl FnMut(ConversationId, u64, Label),
) -> Result<(), JournalError> {
    let subject = leader.names().all_appends();
    // The server that sends them may be behind the leader.
    let Some(mut newest) = leader.last(&subject).await?.map(|entry| entry.sequence) else { return Ok(()) };
    let config = OrderedConfig {
        deliver_policy: DeliverPolicy::LastPerSubject,
        filter_subject: subject.clone(),
        headers_only: true,
        ..OrderedConfig::default()
    };
    let mut patience = leader.patience();
    let consumer = loop {
        match leader.stream.create_consumer(config.clone()).await {
            Ok(consumer) => break consumer,
            Err(error) if !patience.pause().await => return Err(failed(&leader.place, &error.to_string())),
            Err(_) => {}
        }
    };
    let messages = consumer.messages().await;
    let mut messages = messages.map_err(|error| failed(&leader.place, &error.to_string()))?;
    let (mut seen, mut patience) = (0, leader.patience());
    while seen < newest {
        let message = time::timeout(leader.answer_within, messages.next()).await;
        if let Ok(Some(Ok(message))) = message {
            let unknown = |_| failed(&leader.place, "an answer has no sequence");
            seen = message.info().map_err(unknown)?.stream_sequence;
            let headers = message.message.headers.unwrap_or_default();
            let entry = Entry { sequence: seen, headers, payload: message.message.payload };
            if let Some(id) = leader.names().of_subject(&message.message.subject) {
                let label = entry.label(&id)?;
                each(id, seen, label);
            }
            continue;
        }
        // The newest may have been removed meanwhile.
        newest = leader.last(&subject).await?.map_or(0, |entry| entry.sequence);
        if seen < newest && !patience.pause().await {
            return Err(failed(&leader.place, "reading the conversations took too long"));
        }
    }
    Ok(())
}
