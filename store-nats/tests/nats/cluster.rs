//! Three servers: it does what every journal does, and what rivals were told is what is stored, while a leader is frozen
//! and another killed.

use std::{
    cell::Cell,
    collections::{BTreeMap, BTreeSet},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use everturn_orchestrator::{Cursor, Journal, JournalError, Page, Version};
use everturn_sim::nats::{self, NatsCluster, NatsConfig, wait_for};
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::ConversationId;

use crate::support::numbered;

const WRITERS: usize = 4;
const CONVERSATIONS: usize = 40;

/// Number of successful appends between two faults.
const BETWEEN: usize = 300;

/// What an append was told.
struct Told {
    conversation: usize,
    text: String,
    answer: Result<Version, JournalError>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_rivals_are_told_is_what_is_stored() {
    let Some(program) = nats::program() else { return };
    let directory = tempfile::tempdir().unwrap();
    let mut cluster = NatsCluster::start(&program, directory.path(), NatsConfig::default()).await;

    let count = Cell::new(0);
    everturn_sim::journal::conformance(async || {
        count.set(count.get() + 1);
        connect(&cluster, &format!("t{}", count.get())).await as Arc<dyn Journal>
    })
    .await;

    let state = Arc::new((AtomicBool::new(false), AtomicUsize::new(0)));
    let (mut writers, mut journals) = (Vec::new(), Vec::new());
    for writer in 0..WRITERS {
        let mut options = options(&cluster, "rivals");
        if writer == 0 {
            // Shorter than an election, so it must say that it does not know.
            options.give_up_after = Duration::from_secs(2);
        }
        let journal = Arc::new(NatsJournal::connect(&options).await.unwrap());
        journals.push(journal.clone());
        writers.push(tokio::spawn(write(journal, writer, state.clone())));
    }
    for journal in &journals {
        // From now on, its index follows.
        journal.conversations(Page::default()).await.unwrap();
    }
    let appended = async |more: usize| {
        let wanted = state.1.load(Ordering::Relaxed) + more;
        let reached = async || (state.1.load(Ordering::Relaxed) >= wanted).then_some(());
        wait_for(&format!("{more} appends more"), reached).await;
    };
    appended(BETWEEN).await;
    let frozen = cluster.leader_of("RIVALS").await;
    cluster.servers[frozen].freeze();
    appended(BETWEEN).await;
    cluster.servers[frozen].thaw();
    appended(BETWEEN).await;
    let killed = cluster.leader_of("RIVALS").await;
    cluster.servers[killed].kill();
    appended(BETWEEN).await;
    cluster.servers[killed].restart();
    cluster.servers[killed].wait_until_healthy().await;
    appended(BETWEEN).await;
    state.0.store(true, Ordering::Relaxed);

    let mut told = Vec::new();
    for writer in writers {
        told.extend(writer.await.unwrap());
    }
    let lost: u64 = journals.iter().map(|journal| journal.lost_answers()).sum();
    println!("{lost} answers to appends were lost");
    assert!(lost > 0, "the faults hit some append");
    let fresh = connect(&cluster, "rivals").await;
    audit(&*fresh, &told).await;
    journals.push(fresh);
    for journal in &journals {
        let listed = journal.conversations(Page::default()).await.unwrap();
        assert_eq!(listed.len(), CONVERSATIONS);
        for (id, head) in listed {
            assert_eq!(
                journal.load(&id).await.unwrap().unwrap().head,
                head,
                "the index went through it, too"
            );
        }
    }
}

fn options(cluster: &NatsCluster, prefix: &str) -> Options {
    let mut options = Options::new(cluster.urls());
    options.prefix = prefix.to_owned();
    options.answer_within = Duration::from_secs(1);
    options.connect_within = Duration::from_secs(60);
    options
}

async fn connect(cluster: &NatsCluster, prefix: &str) -> Arc<NatsJournal> {
    Arc::new(NatsJournal::connect(&options(cluster, prefix)).await.unwrap())
}

fn id(conversation: usize) -> ConversationId {
    format!("c.{conversation}").as_str().into()
}

/// Appends to the conversations in turn, each at the version that it loaded, until it is told to stop.
async fn write(journal: Arc<NatsJournal>, writer: usize, state: Arc<(AtomicBool, AtomicUsize)>) -> Vec<Told> {
    let appends = (0..CONVERSATIONS).map(async |conversation| {
        let (id, mut told) = (id(conversation), Vec::new());
        for n in 0.. {
            if state.0.load(Ordering::Relaxed) {
                break;
            }
            // Nothing is known while there is no leader.
            let Ok(stored) = journal.load(&id).await else { continue };
            let (version, number) =
                stored.map_or((Version(0), 1), |stored| (stored.version, stored.head.last_seq + 1));
            let text = format!("{writer}-{conversation}-{n}");
            let answer = journal.append(&id, version, numbered(number, &text)).await;
            if answer.is_ok() {
                state.1.fetch_add(1, Ordering::Relaxed);
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
async fn audit(journal: &NatsJournal, told: &[Told]) {
    let mut outcomes: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut won, mut lost, mut unknown) =
        (vec![BTreeMap::new(); CONVERSATIONS], BTreeSet::new(), BTreeSet::new());
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
                lost.insert(text.clone());
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
        let known: Vec<_> = texts.iter().filter(|text| !unknown.contains(*text)).cloned().collect();
        assert_eq!(known, won.values().cloned().collect::<Vec<_>>(), "in the order of the versions");
        assert!(texts.iter().all(|text| !lost.contains(text)), "an append that was refused is not stored");
        let ends: Vec<_> = events.iter().map(|event| event.end.value()).collect();
        assert_eq!(ends, (1..=texts.len() as u64).collect::<Vec<_>>(), "each follows the one that it knew");
        landed += texts.len() - known.len();
        let last = journal.load(&id(conversation)).await.unwrap().unwrap();
        assert_eq!(last.head.last_seq, texts.len() as u64);
    }
    println!("{outcomes:?}; of the unknown, {landed} were stored");
}
