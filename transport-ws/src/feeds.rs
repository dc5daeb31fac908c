//! What a socket is told beside the events that it watches.

use std::sync::Arc;

use axum::extract::ws::Message;
use everturn_orchestrator::Orchestrator;
use everturn_wire::RetrySettingsState;
use tokio::sync::broadcast::{Receiver, error::RecvError};

use crate::{message, status::StatusFeed, watch::Watches};

/// What a socket is told beside the events that it watches.
pub(crate) struct Feeds {
    statuses: StatusFeed,
    /// A peer that was too slow for all changes of settings misses some: they can be read.
    settings: Receiver<Arc<RetrySettingsState>>,
}

/// One thing to tell.
pub(crate) enum Fed {
    Always(Message),
    /// To those who asked for extensions.
    Settings(Arc<RetrySettingsState>),
}

impl Feeds {
    pub(crate) fn new(orchestrator: Orchestrator) -> Self {
        let settings = orchestrator.retry_settings_changes();
        Self { statuses: StatusFeed::new(orchestrator), settings }
    }

    /// The next one. May be dropped at any time.
    pub(crate) async fn next(&mut self) -> Fed {
        tokio::select! {
            change = self.statuses.next() => Fed::Always(message::status_changed(change)),
            state = changed(&mut self.settings) => Fed::Settings(state),
        }
    }
}

impl Fed {
    /// What is sent to a peer that watches this; none if it did not ask for it.
    pub(crate) fn message(self, watches: &Watches) -> Option<Message> {
        match self {
            Self::Always(message) => Some(message),
            Self::Settings(state) => {
                let is_wanted = watches.has_extensions(state.conversation_id.as_ref());
                is_wanted.then(|| message::retry_settings_changed((*state).clone()))
            }
        }
    }
}

async fn changed(settings: &mut Receiver<Arc<RetrySettingsState>>) -> Arc<RetrySettingsState> {
    loop {
        match settings.recv().await {
            Ok(state) => return state,
            Err(RecvError::Lagged(_)) => {}
            // The orchestrator holds the other end, and we hold the orchestrator.
            Err(RecvError::Closed) => std::future::pending().await,
        }
    }
}
