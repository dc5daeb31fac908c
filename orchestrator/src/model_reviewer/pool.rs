//! Reviewers' conversations that can be asked again.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use everturn_wire::ConversationId;

use crate::new_id;

/// Reviews in one conversation: its history grows with each.
const MAX_REVIEWS: u32 = 16;

/// Conversations that are kept to be asked again.
const MAX_IDLE: usize = 256;

/// Conversations in which no review goes on, each for one conversation that is reviewed, the one used last at the end.
#[derive(Default)]
pub(super) struct Pool(Mutex<VecDeque<Idle>>);

struct Idle {
    /// The conversation that is reviewed.
    of: ConversationId,
    id: ConversationId,
    reviews: u32,
}

impl Pool {
    /// A conversation for a review of a call in `of`, and the number of reviews that it had: a new one if all are in use, so
    /// that no review waits for another.
    pub(super) fn take(&self, of: &ConversationId) -> (ConversationId, u32) {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle.iter().rposition(|known| known.of == *of).and_then(|at| idle.remove(at));
        known.map_or_else(|| (new_id::conversation(), 0), |Idle { id, reviews, .. }| (id, reviews))
    }

    /// Keeps a conversation that can be asked again; says whether it is kept.
    pub(super) fn give_back(&self, of: &ConversationId, id: ConversationId, reviews: u32) -> bool {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if reviews >= MAX_REVIEWS || idle.len() >= MAX_IDLE {
            return false;
        }
        idle.push_back(Idle { of: of.clone(), id, reviews });
        true
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
        assert!(pool.give_back(&of, first.clone(), 1));
        assert_ne!(pool.take(&"other".into()).0, first, "another conversation has its own");
        assert_eq!(pool.take(&of), (first.clone(), 1));
        assert!(!pool.give_back(&of, first, MAX_REVIEWS));
        assert_ne!(pool.take(&of).1, MAX_REVIEWS);
    }

    #[test]
    fn the_number_that_is_kept_is_bounded() {
        let pool = Pool::default();
        let kept = (0..1_000).filter(|at| {
            let of = ConversationId::from(format!("c{at}").as_str());
            pool.give_back(&of, new_id::conversation(), 1)
        });
        assert_eq!(kept.count(), MAX_IDLE);
    }
}
