//! Orderly shutdown of a process.

use std::time::Duration;

use everturn_orchestrator::Orchestrator;
use tokio::time::{Instant, sleep};

use super::{book::Book, fuse::Fuse, watch::Watcher};

/// Shuts a process down.
pub(super) struct End {
    pub(super) orchestrator: Orchestrator,
    pub(super) book: Book,
    pub(super) fuse: Fuse,
}

impl End {
    /// Shuts it down in this many milliseconds, and checks that it ends within its grace period with everything
    /// published also saved.
    pub(super) async fn come(self, at_ms: u64, grace_ms: u64, watchers: Vec<Watcher>) {
        let known: Vec<_> = watchers.iter().map(|watcher| watcher.seen().cursor).collect();
        sleep(Duration::from_millis(at_ms)).await;
        let began = Instant::now();
        self.orchestrator.shutdown(Duration::from_millis(grace_ms)).await;
        let took = began.elapsed().as_millis();
        if took > u128::from(grace_ms) {
            self.book.wrong(format!("a shutdown took {took} ms, the grace was {grace_ms} ms"));
        }
        let mut pages = self.book.pages();
        for (watcher, known) in watchers.iter().zip(known) {
            let (told, saved) = (watcher.seen().cursor, pages.durable.get(&watcher.id).copied());
            // Data that a failing journal or an earlier process did not save is withdrawn.
            if told.value() > saved.unwrap_or(0) && told != known && pages.time.unsaved.is_none() {
                pages.wrong(format!("{}: told up to {told}, saved is up to {saved:?}", watcher.id));
            }
        }
        drop(pages);
        self.fuse.burn();
    }
}
