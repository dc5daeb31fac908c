//! Collects reviewers' answers as they arrive.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_kernel::Millis;
use everturn_wire::{AgentEvent, Category, ConversationId, EventBody, Failure};
use tokio::sync::oneshot;

use crate::observer::{CallEnd, Observer, ProviderCall};

/// Maximum length of an answer, in bytes. A longer one is not a valid assessment.
const MAX_ANSWER: usize = 64 << 10;

/// A reviewer's text, or why there is none.
type Answer = Result<String, Failure>;

/// The reviews in progress, by the reviewer's conversation.
#[derive(Default)]
pub(crate) struct Desk(Mutex<HashMap<ConversationId, Review>>);

struct Review {
    text: String,
    /// Whether the text was too long and its end is missing.
    is_cut: bool,
    /// How the call failed; distinguishes an empty answer from a call that broke off.
    failure: Option<Failure>,
    answered: oneshot::Sender<Answer>,
}

impl Desk {
    /// Registers interest in the answer of the turn that is about to begin in this conversation.
    pub(super) fn expect(&self, id: &ConversationId) -> oneshot::Receiver<Answer> {
        let (answered, answer) = oneshot::channel();
        self.lock()
            .insert(id.clone(), Review { text: String::new(), is_cut: false, failure: None, answered });
        answer
    }

    /// Stops waiting for an answer.
    pub(super) fn forget(&self, id: &ConversationId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Review>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for Desk {
    fn event(&self, event: &AgentEvent) {
        let mut reviews = self.lock();
        let Some(review) = reviews.get_mut(&event.conversation_id) else { return };
        match &event.body {
            EventBody::TextDelta { .. } if review.is_cut => {}
            EventBody::TextDelta { delta } if review.text.len() + delta.len() <= MAX_ANSWER => {
                review.text.push_str(delta);
            }
            EventBody::TextDelta { .. } => {
                // The text so far may be a valid assessment by itself; the ellipsis makes it invalid.
                review.text.push('…');
                review.is_cut = true;
            }
            // A turn may fail without a provider call.
            EventBody::Error(report) if review.failure.is_none() && review.text.is_empty() => {
                let category = report.category.unwrap_or(Category::Unknown);
                // For a review, an answer without content is always a failure.
                let category = match category {
                    Category::InvalidResponse => Category::Unknown,
                    category => category,
                };
                review.failure = Some(Failure::new(category, false, report.message.clone()));
            }
            EventBody::TurnSealed => {
                if let Some(Review { text, failure, answered, .. }) = reviews.remove(&event.conversation_id) {
                    // Fails if nobody waits any more.
                    let _ = answered.send(failure.map_or(Ok(text), Err));
                }
            }
            _ => {}
        }
    }

    fn call_ended(&self, call: &ProviderCall, _: Millis, end: CallEnd<'_>) {
        if let (CallEnd::Failed(failure), Some(review)) = (end, self.lock().get_mut(&call.conversation_id)) {
            review.failure = Some(failure.clone());
        }
    }
}
