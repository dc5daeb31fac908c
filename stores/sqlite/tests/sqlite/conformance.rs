//! It does what every journal does.

use std::sync::Arc;

use everturn_orchestrator::Journal;
use everturn_store_sqlite::SqliteJournal;

#[tokio::test]
async fn it_does_what_every_journal_does() {
    let directory = tempfile::tempdir().unwrap();
    let count = std::cell::Cell::new(0);
    everturn_sim::journal::conformance(async || {
        count.set(count.get() + 1);
        let path = directory.path().join(format!("{}.db", count.get()));
        Arc::new(SqliteJournal::open(path).unwrap()) as Arc<dyn Journal>
    })
    .await;
    assert!(count.get() > 5, "it was asked for journals");
}
