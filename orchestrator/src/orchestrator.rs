//! The handle that everything is asked of.

mod again;
mod command;
mod end;
mod query;
mod resume;

use std::sync::{Arc, atomic::AtomicBool};

use everturn_kernel::{Schedule, Settings};
use everturn_wire::{ConversationId, ConversationStatus, Image, TurnId};
use tokio::sync::broadcast;

use crate::{
    Builder, Clock, Cursor, Entry, Journal, JournalError, Version, model::Models, registry::Registry,
    shutdown::Shutdown, timer::Timers, tool::ToolSet,
};

/// Status changes that a slow listener may be behind.
const STATUS_PLACES: usize = 256;

/// Runs conversations. Cheap to clone; all clones are the same orchestrator.
#[derive(Clone)]
pub struct Orchestrator {
    shared: Arc<Shared>,
}

/// What a turn is started with.
#[derive(Clone, Debug, Default)]
pub struct StartTurn {
    /// The conversation; a new one when absent, also made when there is none of that id yet.
    pub conversation_id: Option<ConversationId>,
    /// The user message.
    pub text: String,
    /// Images that go with it.
    pub images: Vec<Image>,
    /// `credential/model`; else the conversation's last one; else the default.
    pub model: Option<String>,
    /// How hard the model should think, in the provider's words.
    pub reasoning_effort: Option<String>,
}

/// A turn that has begun, durably.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Started {
    /// Its conversation.
    pub conversation_id: ConversationId,
    /// The turn.
    pub turn_id: TurnId,
    /// Where its first event begins: subscribe from here to see all of it.
    pub from: Cursor,
}

/// A conversation's status changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusChange {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// What its status is now.
    pub status: ConversationStatus,
}

/// What all conversations share.
pub(crate) struct Shared {
    pub(crate) models: Models,
    pub(crate) tools: ToolSet,
    pub(crate) schedule: Arc<dyn Schedule + Send + Sync>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    pub(crate) system_prompt: Option<String>,
    pub(crate) max_output_tokens: Option<u32>,
    /// In bytes.
    pub(crate) max_tool_result: usize,
    /// In bytes, for each call.
    pub(crate) max_live_output: usize,
    /// Whether failures are retried by themselves, in all conversations.
    pub(crate) auto_retry: Arc<AtomicBool>,
    pub(crate) registry: Registry,
    pub(crate) timers: Timers,
    pub(crate) shutdown: Shutdown,
    pub(crate) status: broadcast::Sender<StatusChange>,
}

impl Orchestrator {
    /// Starts putting one together.
    pub fn builder() -> Builder {
        Builder::new()
    }

    pub(crate) fn new(shared: Shared) -> Self {
        Self::of(Arc::new(shared))
    }

    pub(crate) fn of(shared: Arc<Shared>) -> Self {
        Self { shared }
    }

    pub(crate) fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Told of every status change from now on. A listener that falls far behind misses some.
    pub fn status_changes(&self) -> broadcast::Receiver<StatusChange> {
        self.shared.status.subscribe()
    }
}

impl Shared {
    pub(crate) fn status_channel() -> broadcast::Sender<StatusChange> {
        broadcast::Sender::new(STATUS_PLACES)
    }

    /// Appends to the journal, and has the timer know whether it works.
    pub(crate) async fn append(
        &self,
        id: &ConversationId,
        expected: Version,
        entries: Vec<Entry>,
    ) -> Result<Version, JournalError> {
        let appended = self.journal.append(id, expected, entries).await;
        self.timers.journal_fails(matches!(appended, Err(JournalError::Storage(_))));
        appended
    }

    pub(crate) fn status_changed(&self, change: StatusChange) {
        // Nobody listens: nobody misses it.
        let _ = self.status.send(change);
    }
}
