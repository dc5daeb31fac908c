//! Graceful shutdown.

use std::time::Duration;

use everturn_kernel::Input;

use super::Orchestrator;
use crate::{conversation::Control, shutdown::Stage};

impl Orchestrator {
    /// Shuts down gracefully. New turns are refused ([`crate::Error::ShuttingDown`]). Turns that stream or run tools get the
    /// grace period; turns that wait, or are between two steps, are left at once. Turns that still run afterwards are
    /// checkpointed: streamed text is saved, nothing is sealed, and [`resume`](Self::resume) in the next process continues
    /// them. Then every subscription delivers its remaining events and ends with [`crate::Error::ShuttingDown`]. Queries keep
    /// working.
    ///
    /// Running turns accept commands until then. Returns when everything is saved; how long that takes after the grace
    /// period depends on the journal. Dropping the future does not cancel the shutdown.
    pub async fn shutdown(&self, grace: Duration) {
        self.ports.shutdown.enter(Stage::Draining);
        let orchestrator = self.clone();
        // On a task of its own, so that it goes on if this future is dropped. The task fails only if the runtime ends.
        let _ = tokio::spawn(async move { orchestrator.shut_down(grace).await }).await;
    }

    async fn shut_down(&self, grace: Duration) {
        let shutdown = &self.ports.shutdown;
        self.checkpoint();
        tokio::select! {
            () = shutdown.quiet() => {}
            () = self.ports.clock.sleep(grace) => {
                shutdown.enter(Stage::Leaving);
                self.checkpoint();
                shutdown.quiet().await;
            }
        }
        if let Err(error) = self.ports.usage.save().await {
            tracing::warn!(%error, "the latest usage could not be saved");
        }
        shutdown.set_down();
        for conversation in self.registry.all() {
            conversation.grew.notify_waiters();
        }
        self.leave().await;
    }

    /// Stops saving, for a process that is about to end without a [`shutdown`](Self::shutdown): its turns are left as
    /// after a crash. Without this, tasks end in any order as the runtime shuts down, and a turn that sees its
    /// connection close could still be sealed with that failure. Calls that wait for a save never return.
    pub fn abandon(&self) {
        self.ports.shutdown.enter(Stage::Abandoned);
    }

    /// Completes after [`shutdown`](Self::shutdown) does; transports then close their connections.
    pub async fn down(&self) {
        self.ports.shutdown.down().await;
    }

    /// Makes every running turn save itself and check whether to stop.
    fn checkpoint(&self) {
        self.calls.checkpoint();
        for conversation in self.registry.all() {
            // Errors are ignored: without a turn there is nothing to save, and a turn with a full inbox checks anyway.
            let _ = conversation.send(Control::from(Input::Checkpoint), false);
        }
    }
}
