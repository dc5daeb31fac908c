//! A pool of earlier reviews, which a reviewer sees again.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_wire::{Chunk, ConversationId, Message};

/// Maximum number of reviews that are seen again, as each request contains all of them.
const MAX_REVIEWS: usize = 16;

/// Maximum size of the reviews of one conversation, and of all, in bytes.
const MOST_BYTES: usize = 1 << 20;
const MOST_BYTES_IN_ALL: usize = 16 << 20;

/// The earlier reviews in each conversation, unless a review of it is in progress; the most recently used are last.
#[derive(Default)]
pub(in crate::session) struct Pool(Mutex<VecDeque<(ConversationId, EarlierReviews)>>);

/// Reviews that reached a verdict: the question and the answer of each.
#[derive(Default)]
pub(in crate::session) struct EarlierReviews {
    pub(in crate::session) messages: Vec<Message>,
    bytes: usize,
}

impl Pool {
    /// Takes the earlier reviews in this conversation. There are none if another review has them: no review waits for another.
    pub(in crate::session) fn take(&self, of: &ConversationId) -> EarlierReviews {
        let mut all = self.lock();
        let at = all.iter().rposition(|(known, _)| known == of);
        at.and_then(|at| all.remove(at)).map(|(_, earlier)| earlier).unwrap_or_default()
    }

    /// Keeps these reviews for the next one, unless there are too many. Drops those of the least recently used conversations until
    /// the others fit.
    pub(in crate::session) fn give_back(&self, of: &ConversationId, earlier: EarlierReviews) {
        let count = earlier.messages.len() / 2;
        if !(1..MAX_REVIEWS).contains(&count) || earlier.bytes > MOST_BYTES {
            return;
        }
        let mut all = self.lock();
        all.push_back((of.clone(), earlier));
        let mut bytes: usize = all.iter().map(|(_, earlier)| earlier.bytes).sum();
        while let Some((_, oldest)) = all.pop_front_if(|_| bytes > MOST_BYTES_IN_ALL) {
            bytes -= oldest.bytes;
        }
    }

    /// Drops the reviews in this conversation, which was deleted.
    pub(super) fn forget(&self, of: &ConversationId) {
        self.lock().retain(|(known, _)| known != of);
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(ConversationId, EarlierReviews)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EarlierReviews {
    pub(in crate::session) fn push(&mut self, question: Message, answer: Message) {
        let length = |chunk: &Chunk| if let Chunk::Text { text } = chunk { text.len() } else { 0 };
        self.bytes += question.iter().chain(answer.iter()).map(length).sum::<usize>();
        self.messages.extend([question, answer]);
    }
}

#[cfg(test)]
mod tests {
    use everturn_wire::Role;

    use super::*;

    fn reviewed(mut earlier: EarlierReviews, bytes: usize) -> EarlierReviews {
        let text = |role, text| Message::new(role, [Chunk::Text { text }]);
        earlier.push(text(Role::User, "x".repeat(bytes)), text(Role::Assistant, String::new()));
        earlier
    }

    #[test]
    fn reviews_are_seen_again_while_no_other_has_them_and_not_for_ever() {
        let (pool, of) = (Pool::default(), ConversationId::from("c"));
        for reviews in 0..MAX_REVIEWS {
            let earlier = pool.take(&of);
            assert_eq!(earlier.messages.len(), 2 * reviews);
            assert!(pool.take(&of).messages.is_empty(), "two reviews at once");
            pool.give_back(&of, reviewed(earlier, 100));
            assert!(pool.take(&"other".into()).messages.is_empty(), "another conversation has its own");
        }
        assert!(pool.take(&of).messages.is_empty(), "there are too many");
        pool.give_back(&of, reviewed(EarlierReviews::default(), 100));
        pool.forget(&of);
        assert!(pool.take(&of).messages.is_empty(), "its conversation was deleted");
    }

    #[test]
    fn of_too_many_bytes_the_oldest_are_dropped() {
        let pool = Pool::default();
        let id = |at: usize| ConversationId::from(format!("c{at}").as_str());
        (0..40).for_each(|at| pool.give_back(&id(at), reviewed(EarlierReviews::default(), MOST_BYTES)));
        pool.give_back(&id(40), reviewed(EarlierReviews::default(), MOST_BYTES + 1));
        let kept: Vec<_> = (0..=40).filter(|at| !pool.take(&id(*at)).messages.is_empty()).collect();
        assert_eq!(kept, (24..40).collect::<Vec<_>>());
    }
}
