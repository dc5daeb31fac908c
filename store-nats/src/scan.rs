//! Reading the last append of every conversation, without its content.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, HashMap},
};

use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use everturn_orchestrator::{Head, JournalError, ListCursor, Page, Unsealed, kernel::Millis};
use everturn_wire::ConversationId;
use futures_util::{StreamExt as _, TryStreamExt as _};
use tokio::time;

use crate::{
    entry::Entry,
    error::failed,
    journal::NatsJournal,
    label::{self, Brief, Unreadable},
    leader::Leader,
    title,
};

/// Number of conversations up to which the title of each is asked for.
const ASKED: usize = 256;

/// Number of titles that are asked for at the same time.
const AT_ONCE: usize = 64;

/// A conversation in the order of the list: latest activity first, then by id.
type Rank = (Reverse<Millis>, ConversationId);

impl NatsJournal {
    /// Costs one small message per conversation, about half a second per 100,000, and a request for each of the
    /// page, or one message per renamed conversation if the page is large. Needs memory for the page and these.
    pub(crate) async fn list(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        let limit = page.limit.unwrap_or(usize::MAX);
        let mut ranks: HashMap<ConversationId, Rank> = HashMap::new();
        let mut listed: BTreeMap<Rank, (Head, String)> = BTreeMap::new();
        let each = |id: ConversationId, entry: &Entry, brief: Brief| {
            // Appended to while it was read: the later one counts.
            if let Some(rank) = ranks.remove(&id) {
                listed.remove(&rank);
            }
            let rank = (Reverse(brief.at), id.clone());
            let is_beyond =
                listed.len() >= limit && listed.last_key_value().is_none_or(|last| *last.0 < rank);
            if brief.removes || is_beyond || !is_on(&page, &rank) {
                return Ok(());
            }
            listed.insert(
                rank.clone(),
                (label::head(&entry.headers)?, label::born(&entry.headers)?.to_owned()),
            );
            ranks.insert(id, rank);
            if listed.len() > limit
                && let Some(((_, id), _)) = listed.pop_last()
            {
                ranks.remove(&id);
            }
            Ok(())
        };
        scan(&self.leader, each).await?;
        drop(ranks);
        if listed.len() <= ASKED {
            let titled = listed.into_iter().map(|((_, id), (mut head, born))| async move {
                self.retitle(&id, &born, &mut head).await?;
                Ok((id, head))
            });
            // In order, several at a time.
            return futures_util::stream::iter(titled).buffered(AT_ONCE).try_collect().await;
        }
        let mut titles = self.titles().await?;
        let titled = listed.into_iter().map(|((_, id), (mut head, born))| {
            if let Some((_, title)) = titles.remove(&id).filter(|(of, _)| *of == born) {
                head.title = title;
            }
            (id, head)
        });
        Ok(titled.collect())
    }

    /// Returns all titles, each with the first append of its conversation.
    async fn titles(&self) -> Result<HashMap<ConversationId, (String, String)>, JournalError> {
        let mut titles = HashMap::new();
        let subject = self.leader.names().all_titles();
        let each = |id: ConversationId, entry: Entry| {
            titles.insert(id.clone(), title::read(&id, entry)?);
            Ok(())
        };
        scan_subject(&self.leader, &subject, false, each).await?;
        Ok(titles)
    }

    /// Costs one small message per conversation, about half a second per 100,000. Needs memory for the result only.
    pub(crate) async fn list_unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        let mut waiting: HashMap<ConversationId, Unsealed> = HashMap::new();
        let each = |id: ConversationId, entry: &Entry, brief: Brief| {
            let due = brief.wait.filter(|wait| wait.due_at().is_some_and(|at| at < before));
            match due {
                Some(wait) => {
                    let owner = label::node(entry.append_id());
                    waiting.insert(id.clone(), Unsealed { id, wait, owner })
                }
                None => waiting.remove(&id),
            };
            Ok(())
        };
        scan(&self.leader, each).await?;
        let mut waiting: Vec<_> = waiting.into_values().collect();
        waiting.sort_by(|a, b| a.wait.due_at().cmp(&b.wait.due_at()).then_with(|| a.id.cmp(&b.id)));
        Ok(waiting)
    }
}

/// Whether a conversation is listed after the page's cursor.
fn is_on(page: &Page, rank: &Rank) -> bool {
    let is_after = |after: &ListCursor| (&rank.0, &rank.1) > (&Reverse(after.last_activity_at), &after.id);
    !rank.1.is_ephemeral() && page.after.as_ref().is_none_or(is_after)
}

/// Reads the last append of every conversation. One that changes meanwhile may come again.
pub(crate) async fn scan(
    leader: &Leader,
    mut each: impl FnMut(ConversationId, &Entry, Brief) -> Result<(), Unreadable>,
) -> Result<(), JournalError> {
    let each = |id: ConversationId, entry: Entry| {
        let read = Brief::read(&entry.headers).and_then(|brief| each(id.clone(), &entry, brief));
        read.map_err(|error| entry.unreadable(&id, &error))
    };
    scan_subject(leader, &leader.names().all_appends(), true, each).await
}

/// Reads the last message of every conversation on these subjects. One that changes meanwhile may come again.
async fn scan_subject(
    leader: &Leader,
    subject: &str,
    headers_only: bool,
    mut each: impl FnMut(ConversationId, Entry) -> Result<(), JournalError>,
) -> Result<(), JournalError> {
    // The server that sends them may be behind the leader.
    let Some(mut newest) = leader.last(subject).await?.map(|entry| entry.sequence) else { return Ok(()) };
    let config = OrderedConfig {
        deliver_policy: DeliverPolicy::LastPerSubject,
        filter_subject: subject.to_owned(),
        headers_only,
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
                each(id, entry)?;
            }
            continue;
        }
        // The newest may have been removed meanwhile.
        newest = leader.last(subject).await?.map_or(0, |entry| entry.sequence);
        if seen < newest && !patience.pause().await {
            return Err(failed(&leader.place, "reading the conversations took too long"));
        }
    }
    Ok(())
}
