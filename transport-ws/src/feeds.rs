//! Messages to a socket other than the events it watches.

use std::sync::Arc;

use axum::extract::ws::Message;
use everturn_orchestrator::View;
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

/// One message.
pub(crate) enum Fed {
    Always(Message),
    /// For peers that asked for extensions.
    Settings(RetrySettingsState),
    Call(CallInfo),
}

impl Feeds {
    pub(crate) fn new(orchestrator: View) -> Self {
        let settings = orchestrator.retry_settings_changes();
        let calls = orchestrator.call_changes();
        Self { statuses: StatusFeed::new(orchestrator.clone()), orchestrator, settings, calls }
    }

    /// Returns the next message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Fed {
        let Self { orchestrator, settings, calls, .. } = self;
        tokio::select! {
            change = self.statuses.next() => Fed::Always(message::status_changed(change)),
            state = changed(settings, |state| orchestrator.shown_settings(state)) => Fed::Settings(state),
            call = changed(calls, |call| orchestrator.shown_call(call.clone())) => Fed::Call(call),
        }
    }
}

impl Fed {
    /// Returns the message for a peer with these watches; `None` if it did not ask for it.
    pub(crate) fn message(self, watches: &Watches) -> Option<Message> {
        match self {
            Self::Always(message) => Some(message),
            Self::Settings(state) => {
                let is_wanted = watches.has_extensions(state.conversation_id.as_ref());
                is_wanted.then(|| message::retry_settings_changed(state))
            }
            Self::Call(call) => watches.has_extensions(None).then(|| message::call_changed(call)),
        }
    }
}

/// Returns the next change that is shown.
async fn changed<T>(changes: &mut Receiver<Arc<T>>, shown: impl Fn(&T) -> Option<T>) -> T {
    loop {
        match changes.recv().await {
            Ok(change) => {
                if let Some(change) = shown(&change) {
                    return change;
                }
            }
            Err(RecvError::Lagged(_)) => {}
            // The orchestrator holds the sender, and we hold the orchestrator.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
