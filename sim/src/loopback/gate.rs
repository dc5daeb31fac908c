//! A gate: the test decides when the next bytes flow.

use std::sync::Arc;

use tokio::sync::watch;

/// A door that a reply waits at until the test opens it. Clones are the same gate. Once open it stays open; one that is
/// never opened is a stall for ever.
#[derive(Clone, Debug)]
pub struct Gate {
    open: Arc<watch::Sender<bool>>,
    reached: Arc<watch::Sender<usize>>,
}

impl Gate {
    /// A closed gate.
    pub fn new() -> Self {
        Self { open: Arc::new(watch::Sender::new(false)), reached: Arc::new(watch::Sender::new(0)) }
    }

    /// Lets everything through that waits here or comes later.
    pub fn open(&self) {
        self.open.send_replace(true);
    }

    /// Waits until a reply stands at this gate: all bytes before it are written, none after it. Counts passing too, so
    /// this also returns when the reply has gone through already.
    pub async fn reached(&self) {
        self.reached_by(1).await;
    }

    /// As [`Gate::reached`], for the `n`-th reply that comes to this gate.
    pub async fn reached_by(&self, n: usize) {
        wait(&self.reached, |count| *count >= n).await;
    }

    /// Stands at the gate until it is open.
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
