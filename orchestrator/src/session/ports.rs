//! What sessions run turns with.

use std::sync::{Arc, atomic::AtomicBool};

use everturn_kernel::{Schedule, Settings};
use everturn_wire::ConversationId;

use crate::{
    clock::Clock,
    journal::{Configured, Entry, Journal, JournalError, Version},
    model::Models,
    shutdown::Shutdown,
    status::StatusChanges,
    timer::Timers,
    tool::ToolSet,
};

/// What sessions run turns with. They find no conversation here but the one that they have.
pub(crate) struct Ports {
    pub(crate) models: Models,
    pub(crate) tools: ToolSet,
    pub(crate) schedule: Arc<dyn Schedule + Send + Sync>,
    pub(crate) journal: Arc<dyn Journal>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) settings: Settings,
    /// What turns that begin now are defined by.
    pub(crate) configured: Arc<Configured>,
    /// In bytes.
    pub(crate) max_tool_result: usize,
    /// In bytes, for each call.
    pub(crate) max_live_output: usize,
    /// Whether failures are retried by themselves, in all conversations.
    pub(crate) auto_retry: Arc<AtomicBool>,
    pub(crate) timers: Arc<Timers>,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) status: StatusChanges,
}

impl Ports {
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
}
