//! What reviewers answer, as it comes in.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_kernel::Millis;
use everturn_wire::{AgentEvent, Category, ConversationId, EventBody, Failure};
use tokio::sync::oneshot;

use crate::observer::{CallEnd, Observer, ProviderCall};

/// The longest answer that is read, in bytes. A longer one is no assessment.
const MAX_ANSWER: usize = 64 << 10;

/// A reviewer's text, or why there is none.
type Answer = Result<String, Failure>;

/// The reviews under way, by the conversation of their reviewer.
#[derive(Default)]
pub(crate) struct Desk(Mutex<HashMap<ConversationId, Review>>);

struct Review {
    text: String,
    /// It was too long, so that its end is missing.
    is_cut: bool,
    /// How the call ended: a call that ended well and said nothing differs from one that broke off.
    failure: Option<Failure>,
    answered: oneshot::Sender<Answer>,
}

impl Desk {
    /// The answer of the turn that is about to begin in that conversation.
    pub(super) fn expect(&self, id: &ConversationId) -> oneshot::Receiver<Answer> {
        let (answered, answer) = oneshot::channel();
        self.lock()
            .insert(id.clone(), Review { text: String::new(), is_cut: false, failure: None, answered });
        answer
    }

    /// Nobody waits for that answer any more.
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
                // What was said before may be an assessment by itself: with this it is none.
                review.text.push('…');
                review.is_cut = true;
            }
            // A turn may fail without a call.
            EventBody::Error(report) if review.failure.is_none() && review.text.is_empty() => {
                let category = report.category.unwrap_or(Category::Unknown);
                // An answer without content is none, whatever is made of it elsewhere.
                let category = match category {
                    Category::InvalidResponse => Category::Unknown,
                    category => category,
                };
                review.failure = Some(Failure::new(category, false, report.message.clone()));
            }
            EventBody::TurnSealed => {
                if let Some(Review { text, failure, answered, .. }) = reviews.remove(&event.conversation_id) {
                    // Nobody waits: nobody misses it.
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
