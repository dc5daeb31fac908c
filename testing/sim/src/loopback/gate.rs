//! A gate: the test decides when the next bytes are sent.

use std::sync::Arc;

use tokio::sync::watch;

/// A gate at which a reply waits until the test opens it. Clones share it. Once open, it stays open; a gate that is
/// never opened stalls for ever.
#[derive(Clone, Debug)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
    reached: Arc<watch::Sender<usize>>,
}

impl Gate {
    /// Creates a closed gate.
    pub fn new() -> Self {
        Self { open: Arc::new(watch::Sender::new(false)), reached: Arc::new(watch::Sender::new(0)) }
    }

    /// Opens the gate for all present and future replies.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until a reply has reached this gate: all bytes before it are written, none after it. Also returns if the
    /// reply has already passed.
    pub async fn reached(&self) {
        self.reached_by(1).await;
    }

    /// Like [`Gate::reached`], for the `n`-th reply at this gate.
    pub async fn reached_by(&self, n: usize) {
        wait(&self.reached, |count| *count >= n).await;
    }

    /// Waits at the gate until it is open.
    pub(super) async fn pass(&self) {
        self.reached.send_modify(|count| *count += 1);
        wait(&self.open, |open| *open).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

/// Waits on a channel whose sender is borrowed and therefore alive.
async fn wait<T>(sender: &watch::Sender<T>, reached: impl FnMut(&T) -> bool) {
    let mut receiver = sender.subscribe();
    let outcome = receiver.wait_for(reached).await;
    debug_assert!(outcome.is_ok(), "the sender is borrowed for as long as this waits");
}
