//! Messages to a socket other than the events it watches.

use std::sync::Arc;

use axum::extract::ws::Message;
use everturn_orchestrator::{StatusChange, View};
use everturn_wire::{CallInfo, RetrySettingsState};
use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::{message, status::StatusFeed, watch::Watches};

/// The sources of messages other than events.
pub(crate) struct Feeds {
    statuses: StatusFeed,
    orchestrator: View,
    /// A slow peer misses some changes of settings, which it can read over HTTP.
    settings: Receiver<Arc<RetrySettingsState>>,
    /// The same for calls that are passed through.
    calls: Receiver<Arc<CallInfo>>,
}

/// What is new.
pub(crate) enum Fed {
    Status(StatusChange),
    Settings(Arc<RetrySettingsState>),
    Call(Arc<CallInfo>),
}

impl Feeds {
    pub(crate) fn new(orchestrator: View) -> Self {
        let settings = orchestrator.retry_settings_changes();
        let calls = orchestrator.call_changes();
        Self { statuses: StatusFeed::new(orchestrator.clone()), orchestrator, settings, calls }
    }

    /// Returns what is new. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Fed {
        tokio::select! {
            change = self.statuses.next() => Fed::Status(change),
            state = changed(&mut self.settings) => Fed::Settings(state),
            call = changed(&mut self.calls) => Fed::Call(call),
        }
    }

    /// Returns the message for a peer with these watches; `None` if it did not ask for it, or may not see it.
    pub(crate) fn message(&self, fed: Fed, watches: &Watches) -> Option<Message> {
        match fed {
            Fed::Status(change) => Some(message::status_changed(change)),
            // Checked first, because most peers want no extensions.
            Fed::Settings(_) | Fed::Call(_) if !watches.has_extensions(None) => None,
            Fed::Settings(state) => {
                let state = self.orchestrator.shown_settings(&state)?;
                let is_wanted = watches.has_extensions(state.conversation_id.as_ref());
                is_wanted.then(|| message::retry_settings_changed(state))
            }
            Fed::Call(call) => {
                self.orchestrator.shown_call(Arc::unwrap_or_clone(call)).map(message::call_changed)
            }
        }
    }
}

async fn changed<T: Clone>(changes: &mut Receiver<T>) -> T {
    loop {
        match changes.recv().await {
            Ok(change) => return change,
            Err(RecvError::Lagged(_)) => {}
            // The orchestrator holds the sender, and we hold the orchestrator.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
