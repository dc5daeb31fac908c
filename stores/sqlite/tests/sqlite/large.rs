//! Appends of megabytes beside small ones.

use std::sync::{Arc, Mutex};

use everturn_orchestrator::{Journal as _, Version};
use everturn_store_sqlite::SqliteJournal;
use everturn_wire::ConversationId;
use futures_util::{FutureExt as _, future::join_all};

use super::support::numbered;

#[tokio::test]
async fn a_small_append_waits_for_one_large_one_at_most() {
    const LARGE: usize = 8;
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let done = Arc::new(Mutex::new(Vec::new()));
    let append = |n: usize| {
        let (journal, done) = (&journal, done.clone());
        let text = "x".repeat(if n < LARGE { 8 << 20 } else { 8 });
        async move {
            let id = ConversationId::from(format!("c{n}").as_str());
            journal.append(&id, Version(0), numbered(1, text)).await.unwrap();
            done.lock().unwrap().push(n);
        }
    };
    join_all((0..=LARGE).map(append)).await;
    let done = done.lock().unwrap();
    let before = done.iter().position(|n| *n == LARGE).unwrap();
    // One is being written when it comes; another may have been chosen just before.
    assert!(before <= 2, "{done:?}");
    let large: Vec<_> = done.iter().filter(|n| **n < LARGE).collect();
    assert!(large.is_sorted(), "{done:?}");
}

#[tokio::test]
async fn a_removal_does_not_overtake_a_large_append_whose_caller_gave_up() {
    let directory = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(directory.path().join("journal.db")).unwrap();
    let append = |id: &str| {
        let (journal, id) = (&journal, ConversationId::from(id));
        async move { journal.append(&id, Version(0), numbered(1, "x".repeat(8 << 20))).await }
    };
    for id in ["written meanwhile", "waits", "removed"] {
        assert!(append(id).now_or_never().is_none(), "given up before it is written");
    }
    let id = "removed".into();
    assert!(journal.remove(&id).await.unwrap());
    assert!(journal.load(&id).await.unwrap().is_none());
    // All that was queued before has been done once this is.
    append("last").await.unwrap();
    assert!(journal.load(&id).await.unwrap().is_none());
}
