//! It does what every journal does.

use std::{cell::Cell, sync::Arc};

use everturn_orchestrator::Journal;
use everturn_store_nats::NatsJournal;

use crate::support::Server;

#[tokio::test]
async fn it_does_what_every_journal_does() {
    let Some(server) = Server::start("").await else { return };
    let count = Cell::new(0);
    everturn_sim::journal::conformance(async || {
        count.set(count.get() + 1);
        server.journal().await
    })
    .await;
    assert!(count.get() > 5, "it was asked for journals");
    // Also if it deletes the appends of dropped events at once.
    everturn_sim::journal::conformance(async || {
        Arc::new(NatsJournal::connect(&server.hasty()).await.unwrap()) as Arc<dyn Journal>
    })
    .await;
}
