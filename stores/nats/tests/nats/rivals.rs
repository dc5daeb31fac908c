//! Rivals: writers that append to the same conversations, and the audit of what they were told.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_orchestrator::{Cursor, Head, Journal, JournalError, Page, Version};
use everturn_sim::nats::wait_for;
use everturn_store_nats::NatsJournal;
use everturn_wire::ConversationId;
use tokio::{task::JoinHandle, time::sleep};

use crate::support::numbered;

/// Pause of a writer that cannot read.
const READ_AGAIN: Duration = Duration::from_millis(20);

/// Writers that append to the same conversations.
pub(crate) struct Rivals {
    conversations: usize,
    state: Arc<State>,
    writers: Vec<(Arc<NatsJournal>, JoinHandle<Vec<Told>>)>,
}

#[derive(Default)]
struct State {
    ends: AtomicBool,
    /// Successful appends of each writer.
    stored: Mutex<Vec<usize>>,
}

/// What an append was told.
pub(crate) struct Told {
    conversation: usize,
    text: String,
    answer: Result<Version, JournalError>,
}

impl Rivals {
    pub(crate) fn new(conversations: usize) -> Self {
        Self { conversations, state: Arc::default(), writers: Vec::new() }
    }

    /// Adds a writer.
    pub(crate) fn join(&mut self, journal: Arc<NatsJournal>) {
        self.state.stored.lock().unwrap().push(0);
        let writing = write(journal.clone(), self.writers.len(), self.conversations, self.state.clone());
        self.writers.push((journal, tokio::spawn(writing)));
    }

    /// Waits for so many more successful appends.
    pub(crate) async fn appended(&self, more: usize) {
        self.appended_by(more, |_| true).await;
    }

    /// Waits for so many more successful appends of this writer.
    pub(crate) async fn appended_at(&self, more: usize, writer: usize) {
        self.appended_by(more, |at| at == writer).await;
    }

    /// Waits for so many more successful appends of all but this writer.
    pub(crate) async fn appended_elsewhere(&self, more: usize, writer: usize) {
        self.appended_by(more, |at| at != writer).await;
    }

    async fn appended_by(&self, more: usize, counts: impl Fn(usize) -> bool) {
        let stored = || -> usize {
            let stored = self.state.stored.lock().unwrap();
            stored.iter().enumerate().filter(|(at, _)| counts(*at)).map(|(_, count)| count).sum()
        };
        let wanted = stored() + more;
        wait_for(&format!("{more} appends more"), async || (stored() >= wanted).then_some(())).await;
    }

    /// Returns the number of appends so far whose answer was lost.
    pub(crate) fn unknown(&self) -> u64 {
        self.writers.iter().map(|(journal, _)| journal.lost_answers()).sum()
    }

    /// Makes the index of each journal follow from now on.
    pub(crate) async fn list(&self) {
        for (journal, _) in &self.writers {
            list(journal).await;
        }
    }

    /// Ends the writers, and compares what each append was told, and all indexes, with what this journal holds.
    pub(crate) async fn audit(self, journal: Arc<NatsJournal>) {
        let unknown = self.unknown();
        self.state.ends.store(true, Ordering::Relaxed);
        let (mut told, mut journals) = (Vec::new(), vec![journal.clone()]);
        for (journal, writing) in self.writers {
            told.extend(writing.await.unwrap());
            journals.push(journal);
        }
        println!("{} appends, {unknown} of them lost an answer", told.len());
        audit(&journal, self.conversations, &told).await;
        for indexed in &journals {
            let listed = list(indexed).await;
            assert_eq!(listed.len(), self.conversations);
            for (id, head) in listed {
                let stored = journal.load(&id).await.unwrap().unwrap();
                assert_eq!(stored.head, head, "the index went through it, too");
            }
        }
    }
}

/// Reads the list. Some writers give up before the index has another consumer in place of one that ended with its server.
async fn list(journal: &NatsJournal) -> Vec<(ConversationId, Head)> {
    wait_for("an index that answers", async || journal.conversations(Page::default()).await.ok()).await
}

fn id(conversation: usize) -> ConversationId {
    format!("c.{conversation}").as_str().into()
}

/// Appends to the conversations in turn, each at the version that it loaded, until it is told to stop.
async fn write(
    journal: Arc<NatsJournal>,
    writer: usize,
    conversations: usize,
    state: Arc<State>,
) -> Vec<Told> {
    let appends = (0..conversations).map(async |conversation| {
        let (id, mut told) = (id(conversation), Vec::new());
        for n in 0.. {
            if state.ends.load(Ordering::Relaxed) {
                break;
            }
            let Ok(stored) = journal.load(&id).await else {
                // Nothing is known while there is no leader.
                sleep(READ_AGAIN).await;
                continue;
            };
            let (version, number) =
                stored.map_or((Version(0), 1), |stored| (stored.version, stored.head.last_seq + 1));
            let text = format!("{writer}-{conversation}-{n}");
            let answer = journal.append(&id, version, numbered(number, &text)).await;
            if answer.is_ok() {
                state.stored.lock().unwrap()[writer] += 1;
                // Servers that are behind answer, too. While there is no leader, nothing can be read.
                if let Ok(events) = journal.events(&id, Cursor::from_value(number - 1), 1).await {
                    let read = events.first().map(|event| &*event.json);
                    assert_eq!(read, Some(text.as_bytes()), "what was acknowledged is read");
                }
            }
            told.push(Told { conversation, text, answer });
        }
        told
    });
    futures_util::future::join_all(appends).await.into_iter().flatten().collect()
}

/// Compares what the appends were told with what is stored.
async fn audit(journal: &NatsJournal, conversations: usize, told: &[Told]) {
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut won, mut lost, mut unknown) =
        (vec![BTreeMap::new(); conversations], BTreeMap::new(), BTreeSet::new());
    for Told { conversation, text, answer } in told {
        let outcome = match answer {
            Ok(version) => {
                let before = won[*conversation].insert(*version, text.clone());
                assert_eq!(before, None, "two appends have one version");
                "stored"
            }
            Err(JournalError::Unknown(_)) => {
                unknown.insert(text.clone());
                "unknown"
            }
            Err(error @ (JournalError::Stale { .. } | JournalError::Storage(_))) => {
                lost.insert(text.clone(), error.to_string());
                if error.is_outage() { "not stored" } else { "stale" }
            }
            Err(error) => panic!("an append is told {error}"),
        };
        *outcomes.entry(outcome).or_default() += 1;
    }
    let mut landed = 0;
    for (conversation, won) in won.iter().enumerate() {
        // Reading checks that every append follows the one that it was written after.
        let events = journal.events(&id(conversation), Cursor::default(), usize::MAX).await.unwrap();
        let texts: Vec<_> =
            events.iter().map(|event| str::from_utf8(&event.json).unwrap().to_owned()).collect();
        let wrong: Vec<_> = texts.iter().filter_map(|text| Some((text, lost.get(text)?))).collect();
        assert!(wrong.is_empty(), "appends are stored that were told otherwise: {wrong:?}");
        let known: Vec<_> = texts.iter().filter(|text| !unknown.contains(*text)).cloned().collect();
        assert!(known.iter().eq(won.values()), "{}: in the order of the versions", id(conversation));
        let ends: Vec<_> = events.iter().map(|event| event.end.value()).collect();
        assert_eq!(ends, (1..=texts.len() as u64).collect::<Vec<_>>(), "each follows the one that it knew");
        landed += texts.len() - known.len();
        let last = journal.load(&id(conversation)).await.unwrap().unwrap();
        assert_eq!(last.head.last_seq, texts.len() as u64);
    }
    println!("{outcomes:?}; of the unknown, {landed} were stored");
}
