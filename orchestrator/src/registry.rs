//! The conversations in memory, each loaded once.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
};

use everturn_kernel::Millis;
use everturn_wire::{ConversationId, TurnId};
use uuid::Uuid;

use crate::{Error, Journal, Version, Window, conversation::Conversation};

/// The conversations in memory.
#[derive(Default)]
pub(crate) struct Registry {
    conversations: Mutex<HashMap<ConversationId, Arc<Conversation>>>,
    /// Those whose last turn could not be saved to its end.
    broken: Mutex<HashSet<ConversationId>>,
    /// One load at a time, so that a conversation is never in memory twice.
    loading: tokio::sync::Mutex<()>,
}

impl Registry {
    /// A conversation that exists.
    pub(crate) async fn get(
        &self,
        id: &ConversationId,
        journal: &dyn Journal,
    ) -> Result<Arc<Conversation>, Error> {
        self.find(id, journal).await?.ok_or_else(|| Error::UnknownConversation { id: id.clone() })
    }

    /// A conversation, made if there is none of that id.
    pub(crate) async fn get_or_make(
        &self,
        id: &ConversationId,
        journal: &dyn Journal,
        now: Millis,
    ) -> Result<Arc<Conversation>, Error> {
        if let Some(found) = self.find(id, journal).await? {
            return Ok(found);
        }
        let mut conversations = self.lock();
        let made =
            conversations.entry(id.clone()).or_insert_with(|| Arc::new(Conversation::new(id.clone(), now)));
        Ok(made.clone())
    }

    /// Lets go of a conversation whose turn could not be saved; who asks for it again has it from the journal.
    pub(crate) fn forget_broken(&self, conversation: &Arc<Conversation>) {
        // One that the journal never had has nothing to end.
        if conversation.state().version > Version::default() {
            self.broken.lock().unwrap_or_else(PoisonError::into_inner).insert(conversation.id.clone());
        }
        let mut conversations = self.lock();
        if conversations.get(&conversation.id).is_some_and(|held| Arc::ptr_eq(held, conversation)) {
            conversations.remove(&conversation.id);
        }
    }

    /// Lets go of a parked conversation that nobody else holds: it is in the journal.
    pub(crate) fn let_go(&self, conversation: &Arc<Conversation>) {
        let mut conversations = self.lock();
        // Ours and the registry's own. While the lock is held, nobody gets another one from here.
        if Arc::strong_count(conversation) == 2 && conversation.auto_retry.load(Ordering::Relaxed) {
            conversations.remove(&conversation.id);
        }
    }

    /// All there are now.
    pub(crate) fn all(&self) -> Vec<Arc<Conversation>> {
        self.lock().values().cloned().collect()
    }

    /// Whether watchers were told the end of a turn that the journal may still have unsealed. Asked once.
    fn was_broken(&self, id: &ConversationId) -> bool {
        self.broken.lock().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    async fn find(
        &self,
        id: &ConversationId,
        journal: &dyn Journal,
    ) -> Result<Option<Arc<Conversation>>, Error> {
        if let Some(held) = self.held(id) {
            return Ok(Some(held));
        }
        let _one_at_a_time = self.loading.lock().await;
        if let Some(held) = self.held(id) {
            return Ok(Some(held));
        }
        let Some(stored) = journal.load(id).await? else { return Ok(None) };
        let chunks = journal.chunks(id, Window::default()).await?;
        let broken = self.was_broken(id);
        let loaded = Arc::new(Conversation::from_journal(id.clone(), stored, chunks, broken));
        self.lock().insert(id.clone(), loaded.clone());
        Ok(Some(loaded))
    }

    fn held(&self, id: &ConversationId) -> Option<Arc<Conversation>> {
        self.lock().get(id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Arc<Conversation>>> {
        self.conversations.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A conversation id that no other has; later ones sort later.
pub(crate) fn new_conversation_id() -> ConversationId {
    ConversationId::from(Uuid::now_v7().simple().to_string())
}

/// A turn id that no other has; later ones sort later.
pub(crate) fn new_turn_id() -> TurnId {
    TurnId::from(Uuid::now_v7().simple().to_string())
}

/// A name for a queued message that no other has.
pub(crate) fn new_message_id() -> String {
    Uuid::now_v7().simple().to_string()
}
