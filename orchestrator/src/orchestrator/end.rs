//! Ending in good order.

use std::time::Duration;

use everturn_kernel::Input;

use super::Orchestrator;
use crate::{conversation::Control, shutdown::Stage};

impl Orchestrator {
    /// Shuts down: from now on no turn begins ([`crate::Error::ShuttingDown`]). Turns that stream or run tools may go on
    /// for so long; turns that wait, and those between two steps, are left at once. What is still there after the grace
    /// is checkpointed: what was streamed so far is saved, nothing is sealed, and [`resume`](Self::resume) in the next
    /// process goes on with it. Then every subscription ends with [`crate::Error::ShuttingDown`], after what it has yet
    /// to be told. What is read can still be read.
    ///
    /// Commands for turns that still run are taken until then. Returns when everything is saved: how long that takes
    /// after the grace is up to the journal. May be dropped, which stops nothing but the waiting.
    pub async fn shutdown(&self, grace: Duration) {
        let shutdown = &self.ports.shutdown;
        shutdown.enter(Stage::Draining);
        self.checkpoint();
        tokio::select! {
            () = shutdown.quiet() => {}
            () = self.ports.clock.sleep(grace) => {
                shutdown.enter(Stage::Leaving);
                self.checkpoint();
                shutdown.quiet().await;
            }
        }
        shutdown.set_down();
        for conversation in self.registry.all() {
            conversation.grew.notify_waiters();
        }
    }

    /// Returns when [`shutdown`](Self::shutdown) has: for transports, which then end their connections.
    pub async fn down(&self) {
        self.ports.shutdown.down().await;
    }

    /// Has every running turn look up: it is saved, and sees whether it is to be left.
    fn checkpoint(&self) {
        for conversation in self.registry.all() {
            // One without a turn has nothing to save; one whose inbox is full looks up anyway.
            let _ = conversation.send(Control::from(Input::Checkpoint), false);
        }
    }
}
