//! Exclusive access for loading a conversation.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_wire::ConversationId;
use tokio::sync::OwnedMutexGuard;

type Lock = Arc<tokio::sync::Mutex<()>>;

/// Allows one load at a time per conversation, so that none is in memory twice. Loads of different conversations do not
/// wait for each other.
#[derive(Default)]
pub(super) struct Loading(Mutex<HashMap<ConversationId, Lock>>);

/// Guard: nobody else loads the conversation while it is held.
pub(crate) struct Alone<'l> {
    loading: &'l Loading,
    id: &'l ConversationId,
    held: Option<OwnedMutexGuard<()>>,
}

impl Loading {
    /// Waits for exclusive access to the conversation.
    pub(super) async fn alone<'l>(&'l self, id: &'l ConversationId) -> Alone<'l> {
        let lock = self.lock().entry(id.clone()).or_default().clone();
        // Created before waiting, so that a cancelled wait cleans up too.
        let mut alone = Alone { loading: self, id, held: None };
        alone.held = Some(lock.lock_owned().await);
        alone
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Lock>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.held = None;
        let mut locks = self.loading.lock();
        // Nobody else holds or awaits this lock; a later caller creates a new one.
        if locks.get(self.id).is_some_and(|lock| Arc::strong_count(lock) == 1) {
            locks.remove(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::{FutureExt as _, pin_mut};

    use super::*;

    #[tokio::test]
    async fn one_at_a_time_for_each_and_nothing_stays_behind() {
        let (loading, a, b) = (Loading::default(), ConversationId::from("a"), ConversationId::from("b"));
        let first = loading.alone(&a).await;
        {
            let second = loading.alone(&a);
            pin_mut!(second);
            assert!(second.as_mut().now_or_never().is_none());
            drop(loading.alone(&b).now_or_never().unwrap());
            drop(first);
            drop(second.now_or_never().unwrap());
        }
        let third = loading.alone(&a).await;
        // A wait that is cancelled.
        assert!(loading.alone(&a).now_or_never().is_none());
        assert_eq!(loading.lock().len(), 1);
        drop(third);
        assert!(loading.lock().is_empty());
    }
}
