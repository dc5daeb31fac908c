//! Index of the conversations in memory that are in use.

use std::{
    collections::{HashMap, HashSet},
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use everturn_wire::ConversationId;

use super::Conversation;

/// The conversations in use by a session, a subscriber or a command. When the last user drops a conversation, it is
/// removed from memory; the journal keeps it.
#[derive(Default)]
pub(crate) struct Loaded {
    conversations: Mutex<HashMap<ConversationId, Weak<Conversation>>>,
    /// Those whose turn was taken up again and did not run, because the journal did not confirm its first save.
    unrun: Mutex<HashSet<ConversationId>>,
}

impl Loaded {
    pub(crate) fn get(&self, id: &ConversationId) -> Option<Arc<Conversation>> {
        self.lock().get(id).and_then(Weak::upgrade)
    }

    /// Returns all conversations, ordered by id, so that a shutdown is deterministic in simulations.
    pub(crate) fn all(&self) -> Vec<Arc<Conversation>> {
        let mut all: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// Returns the conversation already registered under this id, or registers this one.
    pub(crate) fn get_or_insert(&self, made: Arc<Conversation>) -> Arc<Conversation> {
        let mut conversations = self.lock();
        if let Some(held) = conversations.get(&made.id).and_then(Weak::upgrade) {
            drop(conversations);
            return held;
        }
        conversations.insert(made.id.clone(), Arc::downgrade(&made));
        made
    }

    /// Removes this conversation. Another instance with the same id stays.
    pub(crate) fn remove(&self, conversation: &Conversation) {
        let mut conversations = self.lock();
        let is_here = |here: &Weak<Conversation>| ptr::eq(here.as_ptr(), conversation);
        if conversations.get(&conversation.id).is_some_and(is_here) {
            conversations.remove(&conversation.id);
        }
    }

    /// Notes that a conversation's turn did not run.
    pub(super) fn note_unrun(&self, id: &ConversationId) {
        self.unrun.lock().unwrap_or_else(PoisonError::into_inner).insert(id.clone());
    }

    /// Whether that was noted since it was last asked.
    pub(super) fn take_unrun(&self, id: &ConversationId) -> bool {
        self.unrun.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    /// Never held while a conversation is dropped, as dropping one takes this lock.
    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Weak<Conversation>>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}
