//! Collects reviewers' answers as they arrive.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_kernel::Millis;
use everturn_wire::{AgentEvent, Category, ConversationId, EventBody, Failure};
use tokio::sync::oneshot;

use crate::{
    observer::{CallEnd, Observer, ProviderCall, TurnEnd},
    reviewer::Switches,
};

/// Maximum length of an answer, in bytes. A longer one is not a valid assessment.
const MAX_ANSWER: usize = 64 << 10;

/// A reviewer's text, or why there is none.
pub(super) enum Answer {
    Text(String),
    Failed(Failure),
    /// No call was made: the target refuses calls until the hint expires.
    Held(Failure),
}

/// The reviews in progress, by the reviewer's conversation.
#[derive(Default)]
pub(crate) struct PendingReviews(Mutex<HashMap<ConversationId, Review>>);

struct Review {
    text: String,
    /// Whether the text was too long and its end is missing.
    is_cut: bool,
    /// Whether a call was made.
    is_asked: bool,
    /// Whether the last call ended well; distinguishes an empty answer from a call that broke off.
    is_complete: bool,
    switches: Switches,
    answered: oneshot::Sender<Answer>,
}

impl PendingReviews {
    /// Registers interest in the answer of the turn that is about to begin in this conversation.
    pub(super) fn expect(&self, id: &ConversationId, switches: Switches) -> oneshot::Receiver<Answer> {
        let (answered, answer) = oneshot::channel();
        let (text, is_cut, is_asked, is_complete) = (String::new(), false, false, false);
        let review = Review { text, is_cut, is_asked, is_complete, switches, answered };
        self.lock().insert(id.clone(), review);
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

impl Observer for PendingReviews {
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
            EventBody::TargetSwitched { from, to, reason, .. } => review.switches.tell(from, to, reason),
            _ => {}
        }
    }

    fn call_begins(&self, call: &ProviderCall) {
        if let Some(review) = self.lock().get_mut(&call.conversation_id) {
            (review.is_asked, review.is_complete) = (true, false);
        }
    }

    fn call_ended(&self, call: &ProviderCall, _: Millis, end: CallEnd<'_>) {
        if let Some(review) = self.lock().get_mut(&call.conversation_id) {
            review.is_complete = matches!(end, CallEnd::Answered);
        }
    }

    fn turn_ended(&self, end: &TurnEnd<'_>) {
        let Some(review) = self.lock().remove(end.conversation_id) else { return };
        let failure = end.turn.outcome().and_then(|outcome| outcome.failure.clone());
        let answer = match failure {
            None => Answer::Text(review.text),
            // For a review, an answer without content is always a failure.
            Some(failure) if review.is_complete && failure.category == Category::InvalidResponse => {
                Answer::Failed(Failure { category: Category::Unknown, ..failure })
            }
            Some(failure) if !review.is_asked && failure.hint_ms.is_some() => Answer::Held(failure),
            Some(failure) => Answer::Failed(failure),
        };
        // Fails if nobody waits any more.
        let _ = review.answered.send(answer);
    }
}
