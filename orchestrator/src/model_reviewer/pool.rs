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
    kept: Kept,
}

/// A reviewer's conversation that can be used again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) id: ConversationId,
    /// How many reviews it has had.
    pub(super) reviews: u32,
    /// Whether its last review reached no verdict, so that the next one takes its place.
    pub(super) is_open: bool,
}

impl Pool {
    /// Returns a conversation for reviewing a call in `of`. A new one if all are in use, so that no review waits for
    /// another.
    pub(super) fn take(&self, of: &ConversationId) -> Kept {
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = idle.iter().rposition(|known| known.of == *of).and_then(|at| idle.remove(at));
        known.map_or_else(|| Kept::new(of), |known| known.kept)
    }

    /// Returns the conversation to the pool. Returns the conversation to drop, if any: this one after too many reviews,
    /// or the least recently used one if there are too many.
    pub(super) fn give_back(&self, of: &ConversationId, kept: Kept) -> Option<ConversationId> {
        if kept.reviews >= MAX_REVIEWS {
            return Some(kept.id);
        }
        let mut idle = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        idle.push_back(Idle { of: of.clone(), kept });
        let surplus = if idle.len() > MAX_IDLE { idle.pop_front() } else { None };
        surplus.map(|oldest| oldest.kept.id)
    }
}

impl Kept {
    /// A conversation that has not begun, for reviewing calls in `of`: its calls count as those of the same caller.
    pub(super) fn new(of: &ConversationId) -> Self {
        let id = new_id::conversation();
        let id = of.caller_name().map_or_else(|| id.clone(), |caller| id.of(&caller));
        Self { id, reviews: 0, is_open: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_is_asked_again_while_it_is_free_and_not_for_ever() {
        let (pool, of) = (Pool::default(), ConversationId::from("c"));
        let first = pool.take(&of);
        assert_eq!(first.reviews, 0);
        assert_ne!(first.id, pool.take(&of).id, "two reviews at once");
        let used = Kept { reviews: 1, ..first };
        assert_eq!(pool.give_back(&of, used.clone()), None);
        assert_ne!(pool.take(&"other".into()).id, used.id, "another conversation has its own");
        assert_eq!(pool.take(&of), used);
        let worn = Kept { reviews: MAX_REVIEWS, ..used };
        assert_eq!(pool.give_back(&of, worn.clone()), Some(worn.id));
        assert_eq!(pool.take(&of).reviews, 0);
    }

    #[test]
    fn of_too_many_the_oldest_are_dropped() {
        let pool = Pool::default();
        let dropped = (0..1_000).filter_map(|at| {
            let id = ConversationId::from(format!("c{at}").as_str());
            pool.give_back(&id.clone(), Kept { id, reviews: 1, is_open: false })
        });
        let dropped: Vec<_> = dropped.collect();
        assert_eq!(dropped.len(), 1_000 - MAX_IDLE);
        assert_eq!((dropped[0].as_str(), dropped[dropped.len() - 1].as_str()), ("c0", "c743"));
        assert_eq!(pool.take(&"c999".into()).reviews, 1, "the latest ones stay");
    }
}
