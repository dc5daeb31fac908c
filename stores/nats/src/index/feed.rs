//! The consumer that feeds the index.

use std::{sync::Arc, time::Duration};

use async_nats::{
    HeaderMap,
    jetstream::{
        Context, Message,
        consumer::{
            DeliverPolicy,
            pull::{Ordered, OrderedConfig},
        },
        context::ContextBuilder,
    },
};
use everturn_ports::{ListEvent, NodeId};
use everturn_wire::ConversationId;
use futures_util::StreamExt as _;
use tokio::time::{sleep, timeout};

use super::{
    projection::{Append, Projection},
    shared::Shared,
};
use crate::{
    label::{self, Brief, Unreadable},
    leader::Leader,
    names::Names,
    title,
};

/// Pause before a consumer is asked for again.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a consumer may take to begin. With a million conversations, a busy server needed 45 s.
pub(super) const OPEN: Duration = Duration::from_secs(120);

/// How long a new consumer may deliver nothing, as long as the index has not everything, before another is asked for.
pub(super) const STALL: Duration = Duration::from_secs(20);

/// Every so many appends that cannot be read, one is logged.
const LOGGED: u64 = 1000;

/// The subjects that the index reads.
pub(super) fn subjects(names: &Names) -> [String; 2] {
    [names.all_appends(), names.all_titles()]
}

/// Feeds the index until the task is aborted.
pub(super) async fn run(shared: Arc<Shared>, leader: Leader) {
    let slow = ContextBuilder::new().timeout(OPEN).build(leader.client.clone());
    let mut feed = Feed { shared: shared.clone(), leader, slow, unreadable: 0 };
    // How many answers in a row did not come in time.
    let mut lost = 0;
    loop {
        let (generation, after) = shared.begin();
        let within = begin_within(after, feed.leader.answer_within, lost);
        let mut connects = feed.leader.connects.clone();
        connects.mark_unchanged();
        tokio::select! {
            () = shared.restart.notified() => {}
            // The consumer may be gone, which the client notices only after a while.
            Ok(()) = connects.changed() => lost = 0,
            // It has ended, or could not be begun.
            is_answered = feed.feed(generation, after, within) => {
                lost = if is_answered { 0 } else { lost + 1 };
                sleep(PAUSE).await;
            }
        }
    }
}

/// Returns how long to wait until a consumer has begun after this message. The answer is lost if its server is killed, so
/// the first attempts are short. But the more conversations there are, the longer NATS takes to begin with the first.
fn begin_within(after: u64, answer_within: Duration, lost: u32) -> Duration {
    let first = if after == 0 { STALL } else { answer_within };
    first.saturating_mul(1 << lost.min(8)).min(OPEN)
}

struct Feed {
    shared: Arc<Shared>,
    leader: Leader,
    /// The connection, with patience for what takes long.
    slow: Context,
    /// How many appends could not be read.
    unreadable: u64,
}

impl Feed {
    /// Takes messages after this one in until the consumer ends, or is of no more use. Returns false if there was no answer in
    /// time whether it has begun.
    async fn feed(&mut self, generation: u64, after: u64, within: Duration) -> bool {
        match timeout(within, self.open(after)).await {
            Ok(Ok((waiting, messages))) => {
                self.shared.begun(generation, waiting);
                self.follow(generation, messages).await;
            }
            Ok(Err(error)) => tracing::debug!(%error, "the index of conversations waits for a consumer"),
            Err(_) => {
                tracing::debug!(
                    ?within,
                    "the index of conversations has no answer whether its consumer has begun"
                );
                return false;
            }
        }
        true
    }

    /// Begins to read after this message; 0 = with the last message of each subject. Also returns how many there are.
    async fn open(&self, after: u64) -> Result<(u64, Ordered), async_nats::Error> {
        let deliver_policy = match after {
            0 => DeliverPolicy::LastPerSubject,
            after => DeliverPolicy::ByStartSequence { start_sequence: after + 1 },
        };
        let config = OrderedConfig {
            deliver_policy,
            filter_subjects: subjects(self.leader.names()).to_vec(),
            headers_only: true,
            ..OrderedConfig::default()
        };
        let stream = self.slow.get_stream_no_info(self.leader.names().stream()).await?;
        let consumer = stream.create_consumer(config).await?;
        Ok((consumer.cached_info().num_pending, consumer.messages().await?))
    }

    /// Takes messages in until the consumer ends, or is of no more use.
    async fn follow(&mut self, generation: u64, mut messages: Ordered) {
        while let Some(Ok(message)) = messages.next().await {
            let Ok((sequence, pending)) = message.info().map(|info| (info.stream_sequence, info.pending))
            else {
                return;
            };
            let Some(id) = self.leader.names().of_subject(&message.subject) else { continue };
            let goes_on = if self.leader.names().is_title(&message.subject) {
                let title = self.title(&id, sequence, &message).await;
                self.shared.take(generation, sequence, pending, |projection| {
                    let Title { born, title, node } = title?;
                    let listed = projection.rename(&id, &born, &title)?;
                    (node.as_ref() != Some(&self.shared.node)).then_some(ListEvent::Changed(listed))
                })
            } else {
                let headers = message.message.headers.unwrap_or_default();
                let node = label::node(label::id(&headers));
                let is_own = node.as_ref() == Some(&self.shared.node);
                let mut error = None;
                let goes_on = self.shared.take(generation, sequence, pending, |projection| {
                    let read = append(projection, &id, sequence, &headers, node);
                    let event = read.unwrap_or_else(|unreadable| {
                        error = Some(unreadable);
                        projection.remove(&id);
                        None
                    });
                    event.filter(|_| !is_own)
                });
                if let Some(error) = error {
                    self.warn(&id, sequence, &error);
                }
                goes_on
            };
            if !goes_on {
                return;
            }
        }
    }

    /// Reads a title. Earlier versions wrote it into the content alone.
    async fn title(&self, id: &ConversationId, sequence: u64, message: &Message) -> Option<Title> {
        let headers = message.headers.as_ref()?;
        let node = label::node(label::id(headers));
        if let Some((born, title)) = title::from_headers(headers) {
            return Some(Title { born, title, node });
        }
        let entry = self.leader.at(sequence).await.ok()??;
        let (born, title) = title::read(id, entry).ok()?;
        Some(Title { born, title, node })
    }

    fn warn(&mut self, id: &ConversationId, sequence: u64, error: &Unreadable) {
        if self.unreadable.is_multiple_of(LOGGED) {
            let before = self.unreadable;
            tracing::warn!(conversation = %id, append = sequence, %error, before, "a conversation is not listed");
        }
        self.unreadable += 1;
    }
}

struct Title {
    /// The first append of the conversation.
    born: String,
    title: String,
    /// Who wrote it, if that is known.
    node: Option<NodeId>,
}

fn append(
    projection: &mut Projection,
    id: &ConversationId,
    version: u64,
    headers: &HeaderMap,
    owner: Option<NodeId>,
) -> Result<Option<ListEvent>, Unreadable> {
    let Brief { removes, wait } = Brief::read(headers)?;
    if removes {
        let is_complete = headers.get(label::TTL).is_some();
        let was_listed = if is_complete { projection.remove(id) } else { projection.interrupt(id) };
        return Ok(was_listed.then(|| ListEvent::Removed(id.clone())));
    }
    let (born, head) = (label::born(headers)?, label::head(headers)?);
    let listed = projection.append(id, Append { version, born, owner, head, wait });
    Ok(listed.map(ListEvent::Changed))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_answer_is_not_waited_for_long_unless_it_takes_long_each_time() {
        let answer = Duration::from_secs(2);
        assert_eq!(begin_within(7, answer, 0), answer);
        assert_eq!(begin_within(7, answer, 3), answer * 8);
        assert_eq!(begin_within(0, answer, 0), STALL, "all conversations take longer than the latest");
        assert_eq!(begin_within(0, answer, u32::MAX), OPEN);
    }
}
