//! A process that is told to end.

use std::time::Duration;

use everturn_orchestrator::Orchestrator;
use tokio::time::{Instant, sleep};

use super::{book::Book, fuse::Fuse, watch::Watcher};

/// Has a process end in good order.
pub(super) struct End {
    pub(super) orchestrator: Orchestrator,
    pub(super) book: Book,
    pub(super) fuse: Fuse,
}

impl End {
    /// Ends it so many milliseconds from now: within its grace, and nothing that anybody was told is unsaved then.
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
            // What a failing journal did not take, or an earlier process, is taken back.
            if told.value() > saved.unwrap_or(0) && told != known && pages.time.unsaved.is_none() {
                pages.wrong(format!("{}: told up to {told}, saved is up to {saved:?}", watcher.id));
            }
        }
        drop(pages);
        self.fuse.burn();
    }
}
