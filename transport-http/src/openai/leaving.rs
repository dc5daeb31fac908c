//! Handles clients that disconnect.

use everturn_orchestrator::{Started, View};
use tokio::runtime::Handle;

/// Stops a turn on drop, unless the turn has ended by then.
pub(super) struct Leaving(Option<(View, Started)>);

impl Leaving {
    /// Creates the handle. `stops`: whether to stop the turn at all.
    pub(super) fn of(orchestrator: &View, started: &Started, stops: bool) -> Self {
        Self(stops.then(|| (orchestrator.clone(), started.clone())))
    }

    /// The client has received everything.
    pub(super) fn is_served(&mut self) {
        self.0 = None;
    }
}

impl Drop for Leaving {
    fn drop(&mut self) {
        let Some((orchestrator, started)) = self.0.take() else { return };
        // Without a runtime, no turn is running.
        let Ok(runtime) = Handle::try_current() else { return };
        runtime.spawn(async move {
            let Started { conversation_id, turn_id, .. } = &started;
            // Do not wake a next turn that waits.
            let turn = orchestrator.turn(conversation_id, turn_id).await;
            if turn.is_ok_and(|turn| turn.reason.is_none())
                && let Err(error) = orchestrator.stop_turn(conversation_id, turn_id).await
            {
                tracing::warn!(%error, "a turn whose client left could not be stopped");
            }
        });
    }
}
