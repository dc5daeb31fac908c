//! Parts that no append names, because their writer ended in between or lost against another.

use std::{collections::BTreeMap, sync::atomic::Ordering, time::Duration};

use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use everturn_ports::JournalError;
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;
use tokio::time;

use crate::{error::failed, journal::NatsJournal, leader::has_passed, parts::AFTER};

/// Age from which a part that no append names is garbage: no append takes as long.
pub(crate) const OLD: Duration = Duration::from_secs(60 * 60);

impl NatsJournal {
    /// Deletes the parts of large appends that were never completed and are at least this old. Returns the number of
    /// appends. [`Journal::drop_ephemeral`](everturn_ports::Journal::drop_ephemeral) does this, too, for those that are an hour old.
    ///
    /// # Errors
    /// When the storage fails; another call continues.
    pub async fn sweep(&self, age: Duration) -> Result<usize, JournalError> {
        sweep(self, age).await
    }
}

/// Deletes parts of this age that no append names. Returns how many appends had some.
pub(crate) async fn sweep(journal: &NatsJournal, age: Duration) -> Result<usize, JournalError> {
    let mut swept = 0;
    let (parts, judged) = parts(journal, age).await?;
    for ((id, append), after) in parts {
        if !is_named(journal, &id, &append, after).await? {
            journal.leader.purge(&journal.leader.names().parts(&id, &append), None).await?;
            swept += 1;
        }
    }
    journal.swept.fetch_max(judged, Ordering::Relaxed);
    Ok(swept)
}

/// Whether an append that must follow the version `after` was stored, and its conversation not removed.
async fn is_named(
    journal: &NatsJournal,
    id: &ConversationId,
    append: &str,
    after: u64,
) -> Result<bool, JournalError> {
    if after == 0 {
        return Ok(journal.last(id).await?.is_some_and(|last| last.label.born == append));
    }
    let next = journal.leader.next(&journal.leader.names().appends(id), after + 1).await?;
    Ok(next.is_some_and(|next| next.append_id() == append))
}

/// An append with parts: its conversation and id.
type Large = (ConversationId, String);

/// Returns the appends that have parts of this age and were not judged before, what each must follow, and the sequence of
/// the last part.
async fn parts(journal: &NatsJournal, age: Duration) -> Result<(BTreeMap<Large, u64>, u64), JournalError> {
    let (leader, mut found) = (&journal.leader, BTreeMap::new());
    let mut judged = journal.swept.load(Ordering::Relaxed);
    let subject = leader.names().all_parts();
    let newest = leader.last(&subject).await?.map_or(0, |entry| entry.sequence);
    if newest <= judged {
        return Ok((found, judged));
    }
    let config = OrderedConfig {
        deliver_policy: DeliverPolicy::ByStartSequence { start_sequence: judged + 1 },
        filter_subject: subject,
        headers_only: true,
        ..OrderedConfig::default()
    };
    let cannot = |error: &dyn std::error::Error| failed(&leader.place, &error.to_string());
    let consumer = leader.stream.create_consumer(config).await.map_err(|error| cannot(&error))?;
    let mut messages = consumer.messages().await.map_err(|error| cannot(&error))?;
    let now = leader.time().await?;
    // A sweep that ends early is continued by the next.
    while let Ok(Some(Ok(message))) = time::timeout(leader.answer_within, messages.next()).await {
        let Ok(info) = message.info() else { break };
        if !has_passed(age, info.published.into(), now) {
            break;
        }
        judged = info.stream_sequence;
        let after = message.headers.as_ref().and_then(|headers| headers.get(AFTER)?.as_str().parse().ok());
        if let (Some(after), Some(part)) = (after, leader.names().of_part(&message.subject)) {
            found.insert(part, after);
        }
        if judged >= newest {
            break;
        }
    }
    Ok((found, judged))
}
