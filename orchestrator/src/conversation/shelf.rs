//! Where conversations in memory are found, for as long as somebody uses them.

use std::{
    collections::HashMap,
    ptr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
};

use everturn_wire::ConversationId;

use super::Conversation;

/// The conversations that somebody uses: a session, a watcher, a command under way. The last one to let go of a
/// conversation has it leave memory; it is in the journal.
#[derive(Default)]
pub(crate) struct Shelf {
    conversations: Mutex<HashMap<ConversationId, Weak<Conversation>>>,
}

impl Shelf {
    pub(crate) fn get(&self, id: &ConversationId) -> Option<Arc<Conversation>> {
        self.lock().get(id).and_then(Weak::upgrade)
    }

    /// Returns all of them by id: the order of a shutdown must not differ between two runs of a simulation.
    pub(crate) fn all(&self) -> Vec<Arc<Conversation>> {
        let mut all: Vec<_> = self.lock().values().filter_map(Weak::upgrade).collect();
        all.sort_by(|a, b| a.id.cmp(&b.id));
        all
    }

    /// The one that is there, else this one, from now on.
    pub(crate) fn get_or_insert(&self, made: Arc<Conversation>) -> Arc<Conversation> {
        let mut conversations = self.lock();
        if let Some(held) = conversations.get(&made.id).and_then(Weak::upgrade) {
            drop(conversations);
            return held;
        }
        conversations.insert(made.id.clone(), Arc::downgrade(&made));
        made
    }

    /// Nobody finds this one here any more. Another one of its id stays.
    pub(crate) fn remove(&self, conversation: &Conversation) {
        let mut conversations = self.lock();
        let is_here = |here: &Weak<Conversation>| ptr::eq(here.as_ptr(), conversation);
        if conversations.get(&conversation.id).is_some_and(is_here) {
            conversations.remove(&conversation.id);
        }
    }

    /// Never held while a conversation is let go of, which takes it.
    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Weak<Conversation>>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.lock().len()
    }
}
