//! A journal in memory that a test can make fail, wait or be written to by someone else.

use std::{
    future::pending,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use everturn_orchestrator::{
    Commit, Cursor, Head, Journal, JournalError, MemoryJournal, Page, Stored, StoredEvent, Unsealed, Version,
    Window, kernel::Millis,
};
use everturn_wire::{ConversationId, StoredChunk, TurnMetrics};
use tokio::{sync::Semaphore, task::yield_now};

/// What happens before an append.
#[derive(Clone)]
pub(crate) enum Mishap {
    Nothing,
    /// The storage fails, nothing is written.
    Fails,
    /// The storage does not say whether it was written.
    Unknown {
        landed: bool,
    },
    /// It refuses this for good, nothing is written.
    Refuses,
    /// Someone else writes first.
    Rival,
    /// The journal breaks.
    Panics,
    /// It takes so many turns of the executor.
    Slow(usize),
    /// It waits to be let through.
    Waits(Arc<Semaphore>),
}

pub(crate) struct Storage {
    inner: MemoryJournal,
    appends: AtomicUsize,
    loads: AtomicUsize,
    plan: Box<dyn Fn(usize) -> Mishap + Send + Sync>,
    /// What the last append with a seal added.
    sealed: Mutex<Option<Commit>>,
    /// Somebody deleted all there was.
    pub(crate) emptied: AtomicBool,
    /// The next load breaks.
    pub(crate) breaks: AtomicBool,
    /// Loads of this one never end.
    pub(crate) stuck: Mutex<Option<ConversationId>>,
    /// The next load waits to be let through.
    pub(crate) held: Mutex<Option<Arc<Semaphore>>>,
}

impl Storage {
    /// `plan` says what happens before the append of that number, from 0.
    pub(crate) fn new(plan: impl Fn(usize) -> Mishap + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self {
            inner: MemoryJournal::new(),
            appends: AtomicUsize::new(0),
            loads: AtomicUsize::new(0),
            plan: Box::new(plan),
            sealed: Mutex::default(),
            emptied: AtomicBool::new(false),
            breaks: AtomicBool::new(false),
            stuck: Mutex::default(),
            held: Mutex::default(),
        })
    }

    pub(crate) fn appends(&self) -> usize {
        self.appends.load(Ordering::Relaxed)
    }

    pub(crate) fn sealed(&self) -> Commit {
        self.sealed.lock().unwrap().clone().expect("a turn was sealed")
    }

    pub(crate) fn loads(&self) -> usize {
        self.loads.load(Ordering::Relaxed)
    }
}

#[async_trait]
impl Journal for Storage {
    async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        commit: Commit,
    ) -> Result<Version, JournalError> {
        let is_ended = commit.head.end_reason.is_some();
        assert!(!is_ended || commit.turn.is_none(), "a turn runs, and yet the last one ended");
        if commit.sealed.is_some() {
            *self.sealed.lock().unwrap() = Some(commit.clone());
        }
        match (self.plan)(self.appends.fetch_add(1, Ordering::Relaxed)) {
            Mishap::Nothing => {}
            Mishap::Fails => return Err(JournalError::Storage("disk full".to_owned())),
            Mishap::Unknown { landed } => {
                if landed {
                    self.inner.append(id, expected, commit).await?;
                }
                return Err(JournalError::Unknown("no answer".to_owned()));
            }
            Mishap::Refuses => return Err(JournalError::Refused("too large".to_owned())),
            Mishap::Rival => {
                let stored = self.inner.load(id).await?;
                let (head, turn) =
                    stored.map_or((commit.head.clone(), None), |stored| (stored.head, stored.turn));
                let same = Commit { turn: turn.map(Box::new), ..Commit::new(head) };
                self.inner.append(id, expected, same).await?;
            }
            Mishap::Panics => panic!("the journal broke"),
            Mishap::Slow(turns) => {
                for _ in 0..turns {
                    yield_now().await;
                }
            }
            Mishap::Waits(gate) => gate.acquire().await.unwrap().forget(),
        }
        self.inner.append(id, expected, commit).await
    }

    async fn load(&self, id: &ConversationId) -> Result<Option<Stored>, JournalError> {
        self.loads.fetch_add(1, Ordering::Relaxed);
        assert!(!self.breaks.swap(false, Ordering::Relaxed), "the journal broke");
        let is_stuck = self.stuck.lock().unwrap().as_ref() == Some(id);
        if is_stuck {
            pending::<()>().await;
        }
        let held = self.held.lock().unwrap().take();
        if let Some(gate) = held {
            gate.acquire().await.unwrap().forget();
        }
        if self.emptied.load(Ordering::Relaxed) { Ok(None) } else { self.inner.load(id).await }
    }

    async fn chunks(
        &self,
        id: &ConversationId,
        window: Window,
    ) -> Result<Vec<Arc<StoredChunk>>, JournalError> {
        self.inner.chunks(id, window).await
    }

    async fn events(
        &self,
        id: &ConversationId,
        after: Cursor,
        limit: usize,
    ) -> Result<Vec<StoredEvent>, JournalError> {
        self.inner.events(id, after, limit).await
    }

    async fn metrics(&self, id: &ConversationId) -> Result<Vec<TurnMetrics>, JournalError> {
        self.inner.metrics(id).await
    }

    async fn conversations(&self, page: Page) -> Result<Vec<(ConversationId, Head)>, JournalError> {
        self.inner.conversations(page).await
    }

    async fn drop_ephemeral(&self, idle_since: Millis) -> Result<Vec<ConversationId>, JournalError> {
        self.inner.drop_ephemeral(idle_since).await
    }

    async fn unsealed(&self, before: Millis) -> Result<Vec<Unsealed>, JournalError> {
        self.inner.unsealed(before).await
    }
}
