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
pub(crate) struct Cache(Mutex<HashMap<ConversationId, Last>>);

impl Cache {
    /// Returns the append with this version, if it is known.
    pub(crate) fn at(&self, id: &ConversationId, version: u64) -> Option<Last> {
        self.lock().get(id).filter(|last| last.version == version).cloned()
    }

    /// Returns the latest version that is known to be stored.
    pub(crate) fn newest(&self, id: &ConversationId) -> Option<u64> {
        self.lock().get(id).map(|last| last.version)
    }

    pub(crate) fn put(&self, id: &ConversationId, last: Last) {
        let mut known = self.lock();
        if known.len() >= CONVERSATIONS && !known.contains_key(id) {
            // Any half: what is missing is read again.
            let mut keep = false;
            known.retain(|_, _| {
                keep = !keep;
                keep
            });
        }
        // Concurrent appends may come back in any order.
        let is_newer = known.get(id).is_none_or(|before| before.version < last.version);
        if is_newer {
            known.insert(id.clone(), last);
        }
    }

    pub(crate) fn forget(&self, id: &ConversationId) {
        self.lock().remove(id);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ConversationId, Last>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
