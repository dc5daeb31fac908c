//! Many writers, no lost update, and answers that could be given one after another.

use std::sync::Arc;

use everturn_orchestrator::{Journal, JournalError};
use everturn_sim::linear::{Plan, Record};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::ConversationId;
use futures_util::{FutureExt as _, future::join_all};

use super::support::{append, checked, version};

const TASKS: u64 = 32;
const CONVERSATIONS: u64 = 8;
const EACH: u64 = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_update_is_lost_among_many_tasks() {
    let directory = tempfile::tempdir().unwrap();
    let journal = Arc::new(SqliteJournal::open(directory.path().join("journal.db")).unwrap());
    let id = |n: u64| ConversationId::from(format!("c{}", n % CONVERSATIONS));
    let tasks: Vec<_> = (0..TASKS)
        .map(|n| {
            let (journal, id) = (journal.clone(), id(n));
            tokio::spawn(async move {
                let mut done = 0;
                while done < EACH {
                    let next = version(&journal, &id).await + 1;
                    match append(&journal, &id, next).await {
                        Ok(version) => {
                            assert_eq!(version.0, next);
                            done += 1;
                        }
                        Err(JournalError::Stale { expected, found, .. }) => assert!(found > expected),
                        Err(error) => panic!("{error}"),
                    }
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    for n in 0..CONVERSATIONS {
        assert_eq!(checked(&journal, &id(n)).await, TASKS / CONVERSATIONS * EACH);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn rivals_are_told_what_could_be_told_one_after_another() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let journal: Arc<dyn Journal> = Arc::new(journal);
    let record = Record::new(4, Plan { removes: true, lists: true, may_lag: false });
    let rivals = (0..8).flat_map(|seed| record.rivals(0, &journal, seed));
    let tasks: Vec<_> = rivals
        .map(|mut rival| {
            tokio::spawn(async move {
                for _ in 0..100 {
                    rival.step().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    let counts = record.audit(&journal).await;
    assert!(counts["stored"] > 100 && counts["stale"] > 100, "{counts:?}");
}

#[tokio::test]
async fn reads_that_nobody_polls_keep_no_place_from_others() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let id = ConversationId::from("a");
    append(&journal, &id, 1).await.unwrap();
    // Polled once: far more than there are places, so that most of them wait for one.
    let mut halted = join_all((0..200).map(|_| journal.load(&id)));
    assert!((&mut halted).now_or_never().is_none());
    assert_eq!(version(&journal, &id).await, 1);
    drop(halted);
}
