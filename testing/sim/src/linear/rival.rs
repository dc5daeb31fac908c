//! Rivals, which use the same conversations at the same time, and the record of what they were told.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use everturn_orchestrator::{
    Commit, Cursor, Head, Journal, JournalError, Page, StoredEvent, Version, Window,
};
use everturn_wire::{Chunk, ConversationId, Role, StoredChunk};
use tokio::time::sleep;

use super::{Append, Operation, Outcome, Told, check};
use crate::numbered::{head, turn};
use Reading::{Chunks, Events};

/// The journal that reads in the end.
const AUDITOR: usize = 999;

/// How often it reads, a second apart: rivals may give up within milliseconds.
const READ_AGAIN: usize = 60;

/// The indexes of journals have numbers of their own.
const INDEXES: usize = 1000;

/// What rivals do besides appending, loading and reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Plan {
    /// One of them removes each conversation once.
    pub removes: bool,
    /// They list all conversations.
    pub lists: bool,
    /// Readings may be outdated: see [`Operation::may_lag`].
    pub may_lag: bool,
}

/// What all rivals did and were told.
#[derive(Debug)]
pub struct Record {
    plan: Plan,
    time: AtomicU64,
    conversations: Vec<Conversation>,
}

#[derive(Debug)]
struct Conversation {
    id: ConversationId,
    history: Mutex<Vec<Operation>>,
    /// Whether an append was acknowledged that begins it.
    has_begun: AtomicBool,
    /// Whether somebody may remove it now: after that, and once.
    is_removable: AtomicBool,
    /// Whether that has begun.
    is_removed: AtomicBool,
}

impl Record {
    /// Begins with no operation on so many conversations.
    pub fn new(conversations: usize, plan: Plan) -> Arc<Self> {
        let conversation = |n: usize| Conversation {
            id: format!("c.{n}").as_str().into(),
            history: Mutex::default(),
            has_begun: AtomicBool::default(),
            is_removable: AtomicBool::default(),
            is_removed: AtomicBool::default(),
        };
        let conversations = (0..conversations).map(conversation).collect();
        Arc::new(Self { plan, time: AtomicU64::new(1), conversations })
    }

    /// Returns a rival for each conversation. `journal` tells journals apart.
    pub fn rivals(self: &Arc<Self>, journal: usize, store: &Arc<dyn Journal>, seed: u64) -> Vec<Rival> {
        let rival = |conversation: usize| Rival {
            record: self.clone(),
            conversation,
            journal,
            store: store.clone(),
            name: format!("{journal}.{seed}"),
            random: fastrand::Rng::with_seed(seed << 32 | conversation as u64),
            known: None,
            newest: Version(0),
            outdated: None,
            own: None,
            count: 0,
            may_lag: self.plan.may_lag,
        };
        (0..self.conversations.len()).map(rival).collect()
    }

    /// Reads all conversations, which contain everything that was acknowledged, and checks the record. Returns the number of
    /// operations, and of appends with each outcome.
    ///
    /// # Panics
    /// If the journal does not answer, or something is wrong.
    pub async fn audit(self: &Arc<Self>, store: &Arc<dyn Journal>) -> BTreeMap<&'static str, usize> {
        let (mut wrong, mut counts) = (Vec::new(), BTreeMap::new());
        for mut rival in self.rivals(AUDITOR, store, 0) {
            rival.may_lag = false;
            let mut readings = [Did::Failed; 3];
            for _ in 0..READ_AGAIN {
                readings =
                    [rival.load().await, rival.read(Events(None)).await, rival.read(Chunks(None)).await];
                if !readings.contains(&Did::Failed) {
                    break;
                }
                sleep(Duration::from_secs(1)).await;
            }
            assert_eq!(readings, [Did::Other; 3], "it can be read in the end");
            let history = rival.conversation().lock();
            for one in history.iter() {
                *counts.entry("operations").or_default() += 1;
                if let Told::Appended(append) = &one.told {
                    *counts.entry(append.outcome.name()).or_default() += 1;
                }
            }
            let what = check(&history).into_iter();
            wrong.extend(what.map(|what| format!("{}: {what}", rival.conversation().id)));
        }
        assert!(
            wrong.is_empty(),
            "{} are wrong of {counts:?}: {:#?}",
            wrong.len(),
            &wrong[..wrong.len().min(9)]
        );
        counts
    }

    fn tick(&self) -> u64 {
        self.time.fetch_add(1, Ordering::SeqCst)
    }
}

impl Conversation {
    fn lock(&self) -> MutexGuard<'_, Vec<Operation>> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Uses one conversation, one operation after another.
#[allow(missing_debug_implementations, reason = "a journal has none")]
pub struct Rival {
    record: Arc<Record>,
    conversation: usize,
    journal: usize,
    store: Arc<dyn Journal>,
    name: String,
    random: fastrand::Rng,
    /// The latest state that it was told of.
    known: Option<Known>,
    /// The highest version that it was told of, and the one before.
    newest: Version,
    outdated: Option<Version>,
    /// The last append that it was told is stored.
    own: Option<Own>,
    count: usize,
    may_lag: bool,
}

/// A state: its version, and the number of chunks in its history.
#[derive(Clone, Copy, Debug)]
struct Known {
    version: Version,
    chunks: u64,
}

/// An append: its mark, where its event begins, and the number of its chunk.
#[derive(Clone, Debug)]
struct Own {
    mark: String,
    start: u64,
    seq: u64,
}

/// What a rival did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Did {
    /// It appended, and was told that it is stored.
    Stored,
    /// It could not read.
    Failed,
    /// Anything else.
    Other,
}

/// A reading: of all, or from an own append on.
enum Reading {
    Events(Option<Own>),
    Chunks(Option<Own>),
}

impl Rival {
    /// Does something.
    pub async fn step(&mut self) -> Did {
        match self.random.u8(..40) {
            0 if self.record.plan.removes => self.remove().await,
            1 if self.record.plan.lists => self.list().await,
            // Less often as it gets longer.
            2 if self.random.usize(..=self.count / 20) == 0 => self.read(Events(None)).await,
            3 if self.random.usize(..=self.count / 20) == 0 => self.read(Chunks(None)).await,
            2..6 => self.read(Events(self.own.clone())).await,
            6..8 => self.read(Chunks(self.own.clone())).await,
            8..14 => self.load().await,
            14..18 if self.outdated.is_some() => {
                let version = self.outdated.unwrap_or_default();
                self.append(Known { version, chunks: 0 }, false).await
            }
            _ => match self.known {
                Some(known) => self.append(known, true).await,
                None => self.load().await,
            },
        }
    }

    fn conversation(&self) -> &Conversation {
        &self.record.conversations[self.conversation]
    }

    fn told(&self, conversation: &Conversation, began: u64, told: Told) {
        let (record, mut journal, may_lag) = (&self.record, self.journal, self.may_lag);
        if may_lag && matches!(told, Told::Listed(_)) {
            // It has an index of its own, which never goes back, and may be behind what is read.
            journal += INDEXES;
        }
        let ended = record.tick();
        conversation.lock().push(Operation { journal, began, ended, told, may_lag });
    }

    async fn read(&mut self, reading: Reading) -> Did {
        let (id, began) = (&self.conversation().id, self.record.tick());
        let (from, read) = match &reading {
            Events(from) => {
                let after = Cursor::from_value(from.as_ref().map_or(0, |own| own.start));
                let text = |event: StoredEvent| String::from_utf8_lossy(&event.json).into_owned();
                let events = self.store.events(id, after, usize::MAX).await;
                (from, events.map(|events| events.into_iter().map(text).collect()))
            }
            Chunks(from) => {
                let since_seq = from.as_ref().map(|own| own.seq - 1);
                let text = |stored: &Arc<StoredChunk>| match &*stored.chunk {
                    Chunk::Text { text } => text.clone(),
                    other => format!("{other:?}"),
                };
                let chunks = self.store.chunks(id, Window { since_seq, ..Window::default() }).await;
                (from, chunks.map(|chunks| chunks.iter().map(text).collect()))
            }
        };
        let Ok(marks) = read else { return Did::Failed };
        let from = from.as_ref().map(|own| own.mark.clone());
        // A conversation that is begun again may have something else where the own append was.
        if from.is_some() && self.conversation().is_removed.load(Ordering::SeqCst) {
            return Did::Other;
        }
        self.told(self.conversation(), began, Told::Read { from, marks });
        Did::Other
    }

    async fn load(&mut self) -> Did {
        let began = self.record.tick();
        let Ok(stored) = self.store.load(&self.conversation().id).await else { return Did::Failed };
        let known = stored.as_ref().map(|stored| (stored.version, stored.head.last_seq));
        let (version, chunks) = known.unwrap_or_default();
        let told = Told::Loaded(stored.map(|stored| (stored.version, mark(stored.head))));
        self.told(self.conversation(), began, told);
        self.learns(Known { version, chunks });
        Did::Other
    }

    fn learns(&mut self, known: Known) {
        self.known = Some(known);
        // Only what is older than something that was told is outdated for certain.
        if known.version > self.newest {
            self.outdated = Some(self.newest).filter(|version| *version > Version(0));
            self.newest = known.version;
        }
    }

    /// Appends after this state. What is outdated anyway has no chunk, which a store may refuse for its number alone.
    async fn append(&mut self, after: Known, has_chunk: bool) -> Did {
        self.count += 1;
        let mark = format!("{}-{}", self.name, self.count);
        let began = self.record.tick();
        let own = Own { mark: mark.clone(), start: began, seq: after.chunks + 1 };
        let expected = after.version;
        let answer = self.store.append(&self.conversation().id, expected, self.commit(&own, has_chunk)).await;
        let outcome = match answer {
            Ok(version) => Outcome::Stored(version),
            Err(JournalError::Stale { found, .. }) => Outcome::Stale(found),
            Err(JournalError::Unknown(_)) => Outcome::Unknown,
            Err(JournalError::Storage(_)) => Outcome::NotStored,
            Err(error) => panic!("an append is told {error}"),
        };
        self.told(self.conversation(), began, Told::Appended(Append { mark, expected, outcome }));
        let Outcome::Stored(version) = outcome else {
            if has_chunk {
                self.known = None;
            }
            return Did::Other;
        };
        if expected == Version(0) && !self.conversation().has_begun.swap(true, Ordering::SeqCst) {
            self.conversation().is_removable.store(true, Ordering::SeqCst);
        }
        self.learns(Known { version, chunks: own.seq });
        self.own = Some(own);
        Did::Stored
    }

    fn commit(&self, own: &Own, has_chunk: bool) -> Commit {
        let Own { mark, start, seq } = own;
        let (start, end) = (Cursor::from_value(*start), Cursor::from_value(start + 1));
        let commit = Commit::new(Head { end, model: Some(mark.clone()), ..head(*seq) });
        let commit = commit.event(StoredEvent { start, end, json: Bytes::from(mark.clone()) });
        // Some have content that is loaded, too.
        let commit = if seq % 3 == 0 { commit.turn(turn()) } else { commit };
        if !has_chunk {
            return commit;
        }
        let chunk = Chunk::Text { text: mark.clone() }.into();
        commit.chunk(StoredChunk { seq: *seq, role: Role::User, chunk, supersedes: None })
    }

    /// Lists all conversations: a reading of each.
    async fn list(&mut self) -> Did {
        let began = self.record.tick();
        let Ok(listed) = self.store.conversations(Page::default()).await else { return Did::Failed };
        for conversation in &self.record.conversations {
            let found = listed.iter().find(|(id, _)| *id == conversation.id);
            let told = Told::Listed(found.map(|(_, head)| mark(head.clone())));
            self.told(conversation, began, told);
        }
        Did::Other
    }

    async fn remove(&mut self) -> Did {
        if !self.conversation().is_removable.swap(false, Ordering::SeqCst) {
            return Did::Other;
        }
        self.conversation().is_removed.store(true, Ordering::SeqCst);
        let began = self.record.tick();
        let removed = self.store.remove(&self.conversation().id).await;
        self.told(self.conversation(), began, Told::Removed(removed.ok()));
        Did::Other
    }
}

fn mark(head: Head) -> String {
    head.model.unwrap_or_default()
}
