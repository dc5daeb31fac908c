//! A pool of reviewers' conversations that can be reused.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use everturn_wire::ConversationId;

use crate::new_id;

/// Maximum number of reviews in one conversation, as its history grows with each.
const MAX_REVIEWS: u32 = 16;

/// Maximum number of idle conversations.
const MAX_IDLE: usize = 256;

/// Idle conversations, each for one reviewed conversation; the most recently used is last.
#[derive(Default)]
pub(super) struct Pool(Mutex<VecDeque<Idle>>);

struct Idle {
    /// The reviewed conversation.
    of: ConversationId,
    id: ConversationId,
    reviews: u32,
}

impl Pool {
    /// Returns a conversation for reviewing a call in `of`, and how many reviews it has had. A new one if all are in
    /// use, so that no review waits for another.
    pub(super) fn take(&self, of: &ConversationId) -> (ConversationId, u32) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle.iter().rposition(|known| known.of == *of).and_then(|at| idle.remove(at));
        known.map_or_else(|| (new_id::conversation(), 0), |Idle { id, reviews, .. }| (id, reviews))
    }

    /// Returns a conversation to the pool. Returns the conversation to drop, if any: this one after too many reviews,
    /// or the least recently used one if there are too many.
    pub(super) fn give_back(
        &self,
        of: &ConversationId,
        id: ConversationId,
        reviews: u32,
    ) -> Option<ConversationId> {
        if reviews >= MAX_REVIEWS {
            return Some(id);
        }
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push_back(Idle { of: of.clone(), id, reviews });
        let surplus = if idle.len() > MAX_IDLE { idle.pop_front() } else { None };
        surplus.map(|oldest| oldest.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_asked_again_while_it_is_free_and_not_for_ever() {
        let (pool, of) = (Pool::default(), ConversationId::from("c"));
        let (first, reviews) = pool.take(&of);
        assert_eq!(reviews, 0);
        let (second, _) = pool.take(&of);
        assert_ne!(first, second, "two reviews at once");
        assert_eq!(pool.give_back(&of, first.clone(), 1), None);
        assert_ne!(pool.take(&"other".into()).0, first, "another conversation has its own");
        assert_eq!(pool.take(&of), (first.clone(), 1));
        assert_eq!(pool.give_back(&of, first.clone(), MAX_REVIEWS), Some(first));
        assert_ne!(pool.take(&of).1, MAX_REVIEWS);
    }

    #[test]
    fn of_too_many_the_oldest_are_dropped() {
        let pool = Pool::default();
        let dropped = (0..1_000).filter_map(|at| {
            let id = ConversationId::from(format!("c{at}").as_str());
            pool.give_back(&id.clone(), id, 1)
        });
        let dropped: Vec<_> = dropped.collect();
        assert_eq!(dropped.len(), 1_000 - MAX_IDLE);
        assert_eq!((dropped[0].as_str(), dropped[dropped.len() - 1].as_str()), ("c0", "c743"));
        assert_eq!(pool.take(&"c999".into()).1, 1, "the latest ones stay");
    }
}
