//! Journals: what they must do, and what becomes of turns when they do not.

use std::sync::Arc;

use everturn_orchestrator::{Journal, MemoryJournal};

#[tokio::test]
async fn the_one_in_memory_is_a_journal() {
    everturn_sim::journal::conformance(async || Arc::new(MemoryJournal::new()) as Arc<dyn Journal>).await;
}
