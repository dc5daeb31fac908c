//! A pool of earlier reviews, which a reviewer sees again.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use everturn_wire::{Chunk, ConversationId, Message};

use crate::memory::{Account, Memory};

/// Maximum number of reviews that are seen again, as each request contains all of them.
const MAX_REVIEWS: usize = 16;

/// Maximum number of reviewed conversations.
const MAX_CONVERSATIONS: usize = 256;

/// The earlier reviews in each conversation, unless a review of it is in progress; the most recently used are last.
#[derive(Default)]
pub(in crate::session) struct Pool(Mutex<VecDeque<(ConversationId, Earlier)>>);

/// Reviews that reached a verdict: the question and the answer of each.
pub(in crate::session) struct Earlier {
    messages: Vec<Message>,
    account: Account,
}

impl Pool {
    /// Takes the earlier reviews in this conversation. `None` if there are none or another review has them: no review waits
    /// for another.
    pub(in crate::session) fn take(&self, of: &ConversationId) -> Option<Earlier> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let at = all.iter().rposition(|(known, _)| known == of)?;
        all.remove(at).map(|(_, earlier)| earlier)
    }

    /// Keeps these reviews for the next one, unless there are too many. If there are too many conversations, it drops those of
    /// the least recently used one.
    pub(in crate::session) fn give_back(&self, of: &ConversationId, earlier: Earlier) {
        if earlier.messages.len() >= 2 * MAX_REVIEWS {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.push_back((of.clone(), earlier));
        if all.len() > MAX_CONVERSATIONS {
            all.pop_front();
        }
    }
}

impl Earlier {
    pub(in crate::session) fn new(memory: &Arc<Memory>) -> Self {
        Self { messages: Vec::new(), account: memory.open() }
    }

    pub(in crate::session) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    pub(in crate::session) fn messages(&self) -> &[Message] {
        &self.messages
    }

    pub(in crate::session) fn account(&self) -> &Account {
        &self.account
    }

    pub(in crate::session) fn push(&mut self, question: Message, answer: Message) {
        let length = |chunk: &Chunk| if let Chunk::Text { text } = chunk { text.len() } else { 0 };
        self.account.add(question.iter().chain(answer.iter()).map(length).sum());
        self.messages.extend([question, answer]);
    }
}

#[cfg(test)]
mod tests {
    use everturn_wire::Role;

    use super::*;

    fn reviewed(mut earlier: Earlier) -> Earlier {
        let text = |role| Message::new(role, [Chunk::Text { text: "text".to_owned() }]);
        earlier.push(text(Role::User), text(Role::Assistant));
        earlier
    }

    #[test]
    fn reviews_are_seen_again_while_no_other_has_them_and_not_for_ever() {
        let (pool, of, memory) = (Pool::default(), ConversationId::from("c"), Arc::default());
        assert!(pool.take(&of).is_none());
        let mut earlier = Earlier::new(&memory);
        for reviews in 1..MAX_REVIEWS {
            pool.give_back(&of, reviewed(earlier));
            assert!(pool.take(&"other".into()).is_none(), "another conversation has its own");
            earlier = pool.take(&of).unwrap();
            assert_eq!(earlier.messages().len(), 2 * reviews);
            assert!(pool.take(&of).is_none(), "two reviews at once");
        }
        pool.give_back(&of, reviewed(earlier));
        assert!(pool.take(&of).is_none(), "there are too many");
    }

    #[test]
    fn of_too_many_conversations_the_oldest_are_dropped() {
        let (pool, memory) = (Pool::default(), Arc::default());
        let id = |at: usize| ConversationId::from(format!("c{at}").as_str());
        (0..1_000).for_each(|at| pool.give_back(&id(at), reviewed(Earlier::new(&memory))));
        let kept: Vec<_> = (0..1_000).filter(|at| pool.take(&id(*at)).is_some()).collect();
        assert_eq!(kept, (1_000 - MAX_CONVERSATIONS..1_000).collect::<Vec<_>>());
    }
}
