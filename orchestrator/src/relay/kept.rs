//! Waits of calls, kept for the next process: a repeated request continues its wait.
//!
//! What is kept is the turn, under a hash of the request ([`CallKey`]): neither body nor credential, so that only the
//! repeated request itself can continue it.

use std::{
    collections::{BTreeMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use everturn_kernel::{Millis, Snapshot, Turn};
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;

use super::key::CallKey;
use crate::{JournalError, StateStore, state::change_document};

/// Number of documents that waits are spread over, so that a change writes few of them.
const DOCUMENTS: u8 = 64;

/// How long a wait is kept after its end, in milliseconds: a day.
const KEPT_MS: u64 = 24 * 60 * 60 * 1_000;

/// Maximum number of waits in a document. The ones that end first are dropped.
const MOST: usize = 256;

/// The waits in one document, by key.
type Waits = BTreeMap<String, Wait>;

#[derive(Serialize, Deserialize)]
struct Wait {
    /// When it ends.
    until: Millis,
    turn: Snapshot,
}

/// The store of waits.
#[derive(Default)]
pub(super) struct Kept {
    /// Which waits there are that no call continues.
    left: OnceCell<Mutex<HashSet<CallKey>>>,
}

impl Kept {
    /// Returns the kept turn of a request.
    pub(super) async fn find(&self, store: Option<&Arc<dyn StateStore>>, key: &CallKey) -> Option<Turn> {
        let store = store?;
        let left = self.left.get_or_try_init(|| read_all(store)).await;
        let left = left.inspect_err(|error| {
            tracing::warn!(%error, "kept waits of calls could not be read: this call starts over, the next tries again");
        });
        let left = left.ok()?;
        lock(left).take(key)?;
        let read = store.read(&document(key)).await;
        let read = read.inspect_err(|error| {
            tracing::warn!(%error, "the kept wait of a call could not be read: this call starts over, the next tries again");
            lock(left).insert(*key);
        });
        let mut waits: Waits = serde_json::from_str(&read.ok()??).ok()?;
        Turn::restore(waits.remove(&key.name())?.turn).ok()
    }

    /// Keeps a turn that waits, or forgets it (`None`).
    pub(super) async fn keep(
        &self,
        store: Option<&Arc<dyn StateStore>>,
        key: &CallKey,
        turn: Option<(Millis, Snapshot)>,
        now: Millis,
    ) {
        let Some(store) = store else { return };
        let turn = turn.map(|(until, turn)| Wait { until, turn });
        let name = document(key);
        let changed = change_document::<JournalError>(&**store, &name, |json| {
            let mut waits: Waits = json.and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
            waits.retain(|_, wait| wait.until.plus(KEPT_MS) > now);
            match &turn {
                Some(Wait { until, turn }) => {
                    waits.insert(key.name(), Wait { until: *until, turn: turn.clone() });
                }
                None => drop(waits.remove(&key.name())),
            }
            while waits.len() > MOST {
                let first = waits.iter().min_by_key(|(_, wait)| wait.until).map(|(name, _)| name.clone());
                first.and_then(|name| waits.remove(&name));
            }
            Ok((!waits.is_empty()).then(|| serde_json::to_string(&waits).unwrap_or_default()))
        });
        if let Err(error) = changed.await {
            tracing::warn!(%error, "the wait of a call could not be saved: after a crash it would start over");
        }
    }

    /// Notes that a call left its wait for a repeated request.
    pub(super) fn leave(&self, key: CallKey) {
        if let Some(left) = self.left.get() {
            lock(left).insert(key);
        }
    }
}

fn lock(left: &Mutex<HashSet<CallKey>>) -> MutexGuard<'_, HashSet<CallKey>> {
    left.lock().unwrap_or_else(PoisonError::into_inner)
}

fn document(key: &CallKey) -> String {
    format!("calls/{}", key.shard(DOCUMENTS))
}

/// Returns the keys of all waits. A document that is damaged has none.
async fn read_all(store: &Arc<dyn StateStore>) -> Result<Mutex<HashSet<CallKey>>, JournalError> {
    let mut left = HashSet::new();
    for number in 0..DOCUMENTS {
        let json = store.read(&format!("calls/{number}")).await?;
        let waits: Waits = json.and_then(|json| serde_json::from_str(&json).ok()).unwrap_or_default();
        left.extend(waits.keys().filter_map(|name| CallKey::parse(name)));
    }
    Ok(Mutex::new(left))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use async_trait::async_trait;
    use everturn_kernel::{Effects, Settings};

    use super::*;
    use crate::MemoryState;

    fn turn() -> Snapshot {
        let turn = Turn::begin_over(
            "t".into(),
            Settings::default(),
            Vec::new(),
            None,
            Millis(1),
            &mut Effects::new(),
        );
        turn.snapshot()
    }

    #[tokio::test]
    async fn a_wait_is_found_once_by_the_next_process() {
        let store: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let (store, key, other) = (Some(&store), CallKey::of_bytes(b"a"), CallKey::of_bytes(b"b"));
        let first = Kept::default();
        assert!(first.find(store, &key).await.is_none());
        first.keep(store, &key, Some((Millis(10), turn())), Millis(1)).await;
        let next = Kept::default();
        assert!(next.find(store, &other).await.is_none());
        assert!(next.find(store, &key).await.is_some());
        assert!(next.find(store, &key).await.is_none(), "a call continues it");
        next.leave(key);
        assert!(next.find(store, &key).await.is_some());
        next.keep(store, &key, None, Millis(1)).await;
        assert!(Kept::default().find(store, &key).await.is_none());
    }

    /// Fails until it is told to work.
    #[derive(Default)]
    struct Failing(MemoryState, AtomicBool);

    #[async_trait]
    impl StateStore for Failing {
        async fn read(&self, name: &str) -> Result<Option<String>, JournalError> {
            if !self.1.load(Ordering::Relaxed) {
                return Err(JournalError::Storage("no disk".to_owned()));
            }
            self.0.read(name).await
        }

        async fn write(&self, name: &str, json: String) -> Result<(), JournalError> {
            self.0.write(name, json).await
        }

        async fn delete(&self, name: &str) -> Result<(), JournalError> {
            self.0.delete(name).await
        }
    }

    #[tokio::test]
    async fn waits_that_could_not_be_read_at_first_are_found_later() {
        let failing = Arc::new(Failing::default());
        let store: Arc<dyn StateStore> = failing.clone();
        let (store, key, kept) = (Some(&store), CallKey::of_bytes(b"a"), Kept::default());
        failing.1.store(true, Ordering::Relaxed);
        Kept::default().keep(store, &key, Some((Millis(10), turn())), Millis(1)).await;
        failing.1.store(false, Ordering::Relaxed);
        assert!(kept.find(store, &key).await.is_none());
        failing.1.store(true, Ordering::Relaxed);
        assert!(kept.find(store, &CallKey::of_bytes(b"b")).await.is_none());
        failing.1.store(false, Ordering::Relaxed);
        assert!(kept.find(store, &key).await.is_none());
        failing.1.store(true, Ordering::Relaxed);
        assert!(kept.find(store, &key).await.is_some());
    }

    #[tokio::test]
    async fn a_wait_that_nobody_continues_is_forgotten() {
        let store: Arc<dyn StateStore> = Arc::new(MemoryState::new());
        let (store, key) = (Some(&store), CallKey::of_bytes(b"a"));
        // The other one is in the same document.
        let other =
            (0_u32..).map(|n| CallKey::of_bytes(&n.to_be_bytes())).find(|it| document(it) == document(&key));
        let (kept, other) = (Kept::default(), other.unwrap());
        kept.keep(store, &key, Some((Millis(10), turn())), Millis(1)).await;
        kept.keep(store, &other, Some((Millis(10), turn())), Millis(10 + KEPT_MS)).await;
        let next = Kept::default();
        assert!(next.find(store, &key).await.is_none());
        assert!(next.find(store, &other).await.is_some());
    }
}
