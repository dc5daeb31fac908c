//! Rivals: journals that use the same conversations, and the audit of what they were told.

use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use everturn_orchestrator::{Head, Journal, Page};
use everturn_sim::{
    linear::{Did, Plan, Record, Rival},
    nats::wait_for,
};
use everturn_store_nats::NatsJournal;
use everturn_wire::ConversationId;
use futures_util::future::join_all;
use tokio::{task::JoinHandle, time::sleep};

/// Pause of a rival that cannot read.
const READ_AGAIN: Duration = Duration::from_millis(20);

/// Journals that use the same conversations.
pub(crate) struct Rivals {
    record: Arc<Record>,
    state: Arc<State>,
    writers: Vec<(Arc<NatsJournal>, JoinHandle<()>)>,
}

#[derive(Default)]
struct State {
    ends: AtomicBool,
    /// Successful appends of each writer.
    stored: Mutex<Vec<usize>>,
}

impl Rivals {
    pub(crate) fn new(conversations: usize, plan: Plan) -> Self {
        let record = Record::new(conversations, plan);
        Self { record, state: Arc::default(), writers: Vec::new() }
    }

    /// Adds a writer.
    pub(crate) fn join(&mut self, journal: Arc<NatsJournal>) {
        self.state.stored.lock().unwrap().push(0);
        let number = self.writers.len();
        let rivals = self.record.rivals(number, &(journal.clone() as Arc<dyn Journal>), number as u64);
        let (state, rivals) = (self.state.clone(), rivals.into_iter());
        let all = async move { drop(join_all(rivals.map(|rival| compete(rival, number, &state))).await) };
        self.writers.push((journal, tokio::spawn(all)));
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

    /// Ends them, and checks what they were told, and all indexes, against what this journal holds.
    pub(crate) async fn audit(self, journal: Arc<NatsJournal>) {
        let unknown = self.unknown();
        self.state.ends.store(true, Ordering::Relaxed);
        let mut journals = vec![journal.clone()];
        for (journal, writing) in self.writers {
            writing.await.unwrap();
            journals.push(journal);
        }
        let counts = self.record.audit(&(journal.clone() as Arc<dyn Journal>)).await;
        println!("{counts:?}, {unknown} appends lost an answer");
        for indexed in &journals {
            for (id, head) in list(indexed).await {
                let stored = journal.load(&id).await.unwrap().unwrap();
                assert_eq!(stored.head, head, "the index went through it, too");
            }
        }
    }
}

/// Uses a conversation until it is told to stop.
async fn compete(mut rival: Rival, number: usize, state: &State) {
    while !state.ends.load(Ordering::Relaxed) {
        match rival.step().await {
            Did::Stored => state.stored.lock().unwrap()[number] += 1,
            // Nothing is known while there is no leader.
            Did::Failed => sleep(READ_AGAIN).await,
            Did::Other => {}
        }
    }
}

/// Reads the list. Some writers give up before the index has another consumer in place of one that ended with its server.
async fn list(journal: &NatsJournal) -> Vec<(ConversationId, Head)> {
    wait_for("an index that answers", async || journal.conversations(Page::default()).await.ok()).await
}
