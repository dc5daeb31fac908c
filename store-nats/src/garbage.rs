//! Parts that no append names, because their writer ended in between or lost against another.

use std::{collections::BTreeMap, time::Duration};

use async_nats::jetstream::consumer::{DeliverPolicy, pull::OrderedConfig};
use everturn_orchestrator::JournalError;
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;
use tokio::time;

use crate::{error::failed, journal::NatsJournal};

/// Header of a part: the version that its append must follow.
pub(crate) const AFTER: &str = "Ev-After";

/// Age from which a part that no append names is garbage: no append takes as long.
pub(crate) const OLD: Duration = Duration::from_secs(60 * 60);

/// Deletes parts of this age that no append names. Returns how many appends had some.
pub(crate) async fn sweep(journal: &NatsJournal, age: Duration) -> Result<usize, JournalError> {
    let mut swept = 0;
    for ((id, append), after) in parts(journal, age).await? {
        let (leader, names) = (&journal.leader, journal.leader.names());
        let mut next = leader.next(&names.appends(&id), after + 1).await?;
        // A first append may follow the mark of a removal.
        while after == 0
            && let Some(entry) = &next
            && entry.append_id() != append
        {
            next = leader.next(&names.appends(&id), entry.sequence + 1).await?;
        }
        if next.is_none_or(|next| next.append_id() != append) {
            leader.purge(&names.parts(&id, &append), None).await?;
            swept += 1;
        }
    }
    Ok(swept)
}

/// An append with parts: its conversation and id.
type Large = (ConversationId, String);

/// Returns the appends that have parts of this age, and what each must follow.
async fn parts(journal: &NatsJournal, age: Duration) -> Result<BTreeMap<Large, u64>, JournalError> {
    let (leader, mut found) = (&journal.leader, BTreeMap::new());
    let subject = leader.names().all_parts();
    let Some(newest) = leader.last(&subject).await? else { return Ok(found) };
    let config = OrderedConfig {
        deliver_policy: DeliverPolicy::All,
        filter_subject: subject,
        headers_only: true,
        ..OrderedConfig::default()
    };
    let cannot = |error: &dyn std::error::Error| failed(&leader.place, &error.to_string());
    let consumer = leader.stream.create_consumer(config).await.map_err(|error| cannot(&error))?;
    let mut messages = consumer.messages().await.map_err(|error| cannot(&error))?;
    let now = std::time::SystemTime::now();
    // A sweep that ends early is continued by the next.
    while let Ok(Some(Ok(message))) = time::timeout(leader.answer_within, messages.next()).await {
        let Ok(info) = message.info() else { break };
        let is_old = now.duration_since(info.published.into()).is_ok_and(|passed| passed >= age);
        let after = message.headers.as_ref().and_then(|headers| headers.get(AFTER)?.as_str().parse().ok());
        if let (true, Some(after), Some(part)) = (is_old, after, leader.names().of_part(&message.subject)) {
            found.insert(part, after);
        }
        if !is_old || info.stream_sequence >= newest.sequence {
            break;
        }
    }
    Ok(found)
}
