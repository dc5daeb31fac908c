//! What a command did to the queue at another node although no reply arrived: the saved events tell.

use everturn_wire::{AgentEvent, ConversationId, EventBody, QueueCancelled, Queued, QueuedMessage};

use super::Orchestrator;
use crate::{
    Cursor, JournalError,
    cluster::{Command, Reply},
    conversation::Conversation,
};

/// Number of events that are read at a time.
const EVENTS: usize = 256;

/// What this node knew of a conversation when it first sent a command to another one.
pub(super) struct Sent {
    /// Where the events ended.
    after: Cursor,
    queue: Vec<QueuedMessage>,
}

/// What happened to a queued message since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It was never queued.
    Unknown,
    Queued,
    /// It was said.
    Said,
    /// It was queued, and was not said.
    Withdrawn,
}

impl Sent {
    /// For a request that may have been carried out at any time since the turn began.
    pub(super) fn since(turn: Cursor) -> Self {
        Self { after: turn, queue: Vec::new() }
    }

    pub(super) fn now(conversation: &Conversation) -> Self {
        let state = conversation.state();
        Self { after: state.record.head.end, queue: state.live.queue.clone() }
    }
}

impl Orchestrator {
    /// Returns the reply to a command for the queue if another node has carried it out since it was sent. A message that was
    /// queued must not be queued again, and one that was withdrawn is no longer there.
    pub(super) async fn reply_from_events(
        &self,
        conversation: &Conversation,
        sent: &Sent,
        command: &Command,
    ) -> Result<Option<Reply>, JournalError> {
        let id = &conversation.id;
        let is_done = match command {
            Command::Enqueue { message_id, text } => {
                let followed = Followed::new(message_id, Some(text), &sent.queue);
                self.fate(id, sent.after, followed).await? != Fate::Unknown
            }
            Command::CancelQueued { message_id } => {
                let followed = Followed::new(message_id, None, &sent.queue);
                self.fate(id, sent.after, followed).await? == Fate::Withdrawn
            }
            _ => false,
        };
        if !is_done {
            return Ok(None);
        }
        let (conversation_id, queue) = (id.clone(), conversation.state().live.queue.clone());
        Ok(Some(match command {
            Command::CancelQueued { .. } => {
                Reply::Cancelled(QueueCancelled { conversation_id, cancelled: true, queue })
            }
            _ => Reply::Queued(Queued { conversation_id, started_turn: false, queue }),
        }))
    }

    async fn fate(
        &self,
        id: &ConversationId,
        mut after: Cursor,
        mut followed: Followed<'_>,
    ) -> Result<Fate, JournalError> {
        loop {
            let events = self.ports.journal.events(id, after, EVENTS).await?;
            let Some(last) = events.last() else { return Ok(followed.fate()) };
            after = last.end;
            for event in &events {
                if let Ok(event) = serde_json::from_slice::<AgentEvent>(&event.json) {
                    followed.see(&event.body);
                }
            }
        }
    }
}

/// One message, followed through events.
struct Followed<'m> {
    id: &'m str,
    /// If its text is known, another one with the same id is not meant.
    means: Option<&'m str>,
    /// Its text, once it was queued.
    text: Option<String>,
    is_queued: bool,
    is_said: bool,
}

impl<'m> Followed<'m> {
    fn new(id: &'m str, means: Option<&'m str>, queue: &[QueuedMessage]) -> Self {
        let mut new = Self { id, means, text: None, is_queued: false, is_said: false };
        new.see_queue(queue);
        new
    }

    fn see_queue(&mut self, queue: &[QueuedMessage]) {
        let is_it = |message: &&QueuedMessage| {
            message.message_id == self.id && self.means.is_none_or(|text| message.text == text)
        };
        let queued = queue.iter().find(is_it);
        self.is_queued = queued.is_some();
        if let Some(message) = queued {
            self.text = Some(message.text.clone());
        }
    }

    fn see(&mut self, event: &EventBody) {
        match event {
            EventBody::QueueChanged { queue } => self.see_queue(queue),
            // Before or after the change of the queue.
            EventBody::Steering { text } | EventBody::UserMessage { text, .. } => {
                self.is_said |= self.text.as_ref() == Some(text);
            }
            _ => {}
        }
    }

    fn fate(&self) -> Fate {
        match (&self.text, self.is_queued, self.is_said) {
            (None, ..) => Fate::Unknown,
            (_, true, _) => Fate::Queued,
            (_, _, true) => Fate::Said,
            _ => Fate::Withdrawn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue(texts: &[&str]) -> Vec<QueuedMessage> {
        texts
            .iter()
            .map(|text| QueuedMessage { message_id: format!("id of {text}"), text: (*text).to_owned() })
            .collect()
    }

    fn fate(before: &[&str], events: &[EventBody]) -> Fate {
        let mut followed = Followed::new("id of a", Some("a"), &queue(before));
        events.iter().for_each(|event| followed.see(event));
        followed.fate()
    }

    #[test]
    fn events_tell_what_became_of_a_message() {
        let changed = |texts: &[&str]| EventBody::QueueChanged { queue: queue(texts) };
        let steering = |text: &str| EventBody::Steering { text: text.to_owned() };
        let begins = |text: &str| EventBody::UserMessage { text: text.to_owned() };
        assert_eq!(fate(&[], &[]), Fate::Unknown);
        assert_eq!(fate(&["b"], &[changed(&[]), steering("b")]), Fate::Unknown);
        assert_eq!(fate(&[], &[begins("a"), changed(&[])]), Fate::Unknown, "somebody else said the same");
        assert_eq!(fate(&[], &[changed(&["b", "a"])]), Fate::Queued);
        assert_eq!(fate(&["a"], &[begins("b"), changed(&["a"])]), Fate::Queued);
        assert_eq!(fate(&["a", "b"], &[changed(&[]), steering("a"), steering("b")]), Fate::Said);
        assert_eq!(fate(&[], &[changed(&["a"]), begins("a"), changed(&[])]), Fate::Said);
        assert_eq!(fate(&["a", "b"], &[changed(&["b"]), changed(&[]), steering("b")]), Fate::Withdrawn);
        assert_eq!(fate(&[], &[changed(&["a"]), changed(&[])]), Fate::Withdrawn);
    }
}
