//! The last appends of conversations in use, so that an append need not read the one before it.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use everturn_wire::ConversationId;

use crate::label::Last;

/// Maximum number of conversations. One takes about 1 kB.
const CONVERSATIONS: usize = 4096;

/// The last appends of conversations in use.
#[derive(Debug, Default)]
pub(crate) struct Cache(Mutex<HashMap<ConversationId, Known>>);

/// What is known of a conversation.
#[derive(Debug, Default)]
struct Known {
    /// The latest version, or the sequence of the removal, that this process was told of.
    newest: u64,
    /// The append with this version, if it was written or loaded here.
    last: Option<Last>,
}

impl Cache {
    /// Returns the append with this version, if it is known.
    pub(crate) fn at(&self, id: &ConversationId, version: u64) -> Option<Last> {
        self.lock().get(id)?.last.clone().filter(|last| last.version == version)
    }

    /// Returns the latest version that is known to be stored; 0 = none.
    pub(crate) fn newest(&self, id: &ConversationId) -> u64 {
        self.lock().get(id).map_or(0, |known| known.newest)
    }

    /// Remembers that this version is stored; 0 = none. Answers may come back in any order.
    pub(crate) fn saw(&self, id: &ConversationId, version: u64) {
        if version > 0 {
            self.learn(id, version, |_| {});
        }
    }

    pub(crate) fn put(&self, id: &ConversationId, last: Last) {
        self.learn(id, last.version, |known| known.last = Some(last));
    }

    /// Applies `then` if nothing newer is known.
    fn learn(&self, id: &ConversationId, version: u64, then: impl FnOnce(&mut Known)) {
        let mut all = self.lock();
        if all.len() >= CONVERSATIONS && !all.contains_key(id) {
            // Half of them, as they are in no order. What is missing is read again.
            let mut keeps = false;
            all.retain(|_, _| {
                keeps = !keeps;
                keeps
            });
        }
        let known = all.entry(id.clone()).or_default();
        if version >= known.newest {
            known.newest = version;
            then(known);
        }
    }

    pub(crate) fn forget(&self, id: &ConversationId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Known>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
