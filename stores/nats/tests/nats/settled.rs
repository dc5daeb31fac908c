//! Three servers: old conversations are read, and their events dropped, while a leader is frozen and another killed.

use std::time::Duration;

use everturn_orchestrator::{Cursor, Journal, JournalError, Retention, Version};
use everturn_sim::nats::{self, NatsCluster, NatsConfig, wait_for};
use everturn_store_nats::{NatsJournal, Options};
use everturn_wire::ConversationId;
use futures_util::future::join_all;

use crate::{
    base::{assert_whole, write},
    support::CLUSTER,
};

const APPENDS: u64 = 400;
const CONVERSATIONS: usize = 3;

/// Number of turns whose events are kept at the end.
const KEPT: u32 = 4;

fn id(conversation: usize) -> ConversationId {
    format!("c.{conversation}").as_str().into()
}

async fn connect(cluster: &NatsCluster) -> NatsJournal {
    let mut options = Options::new(cluster.urls());
    options.answer_within = Duration::from_secs(1);
    options.connect_within = Duration::from_secs(60);
    // Nobody appends to these conversations while events are dropped.
    options.settled_after = Duration::ZERO;
    NatsJournal::connect(&options).await.unwrap()
}

/// Drops events until this many turns have some, and returns whether that succeeded.
async fn drop_until(journals: &[NatsJournal], turns: u32) -> bool {
    let retention = Retention { newest_turns: Some(turns), sealed_before: None };
    let dropped = join_all(journals.iter().map(|journal| journal.drop_events(retention))).await;
    dropped.into_iter().filter_map(answer).count() > 0
}

/// Reads what can be read without a leader, and asserts that it is whole.
async fn read(journal: &NatsJournal) {
    for id in (0..CONVERSATIONS).map(id) {
        let Some(events) = answer(journal.events(&id, Cursor::default(), usize::MAX).await) else { continue };
        let ends: Vec<u64> = events.iter().map(|event| event.end.value()).collect();
        assert_eq!(ends, (ends[0]..=APPENDS).collect::<Vec<_>>(), "no event is missing in between");
        assert_eq!(ends[0] % 5, 1, "they begin with those of a turn");
        let Some(chunks) = answer(journal.chunks(&id, Default::default()).await) else { continue };
        assert_eq!(chunks.len() as u64, APPENDS);
    }
}

/// Returns the answer, if there is a leader.
fn answer<T>(read: Result<T, JournalError>) -> Option<T> {
    read.inspect_err(|error| assert!(!error.to_string().contains("damaged"), "{error}")).ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_conversations_stay_whole_while_servers_fail() {
    let Some(program) = nats::program() else { return };
    let _alone = CLUSTER.lock().await;
    let directory = tempfile::tempdir().unwrap();
    let mut cluster = NatsCluster::start(&program, directory.path(), NatsConfig::default()).await;
    let journals = [connect(&cluster).await, connect(&cluster).await];
    let written = (0..CONVERSATIONS).map(|conversation| {
        let journal = &journals[conversation % 2];
        async move { write(journal, &id(conversation), Version(0), 1..=APPENDS).await }
    });
    join_all(written).await;
    let mut turns = 76;
    for fault in 0..3 {
        let leader = cluster.leader_of("EV").await;
        match fault {
            1 => cluster.servers[leader].freeze(),
            2 => cluster.servers[leader].kill(),
            _ => {}
        }
        // Each drops some more, whether or not there is a leader; readers see one or the other.
        let drops = async {
            for _ in 0..8 {
                turns -= 3;
                drop_until(&journals, turns).await;
            }
        };
        let reads = async {
            for _ in 0..8 {
                read(&journals[0]).await;
                read(&journals[1]).await;
            }
        };
        futures_util::future::join(drops, reads).await;
        match fault {
            1 => cluster.servers[leader].thaw(),
            2 => {
                cluster.servers[leader].restart();
                cluster.servers[leader].wait_until_healthy().await;
            }
            _ => {}
        }
    }
    assert_eq!(turns, KEPT);
    let done = async || drop_until(&journals, KEPT).await.then_some(());
    wait_for("there is a leader", done).await;
    // Once more, in case one was interrupted.
    assert!(drop_until(&journals[..1], KEPT).await);
    for id in (0..CONVERSATIONS).map(id) {
        assert_whole(&journals[1], &id, APPENDS).await;
        let events = journals[1].events(&id, Cursor::default(), usize::MAX).await.unwrap();
        assert_eq!(events.len(), 5 * KEPT as usize);
    }
}
