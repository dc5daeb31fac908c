//! A reviewer that asks a model, in private conversations that are not shown to people.

mod desk;
mod pool;
mod prompt;
mod verdict;

use std::sync::Arc;

use async_trait::async_trait;
use everturn_kernel::ReviewAnswer;
use everturn_wire::{Category, ConversationId, Failure, RetrySettings};

use crate::{
    Error, Orchestrator, StartTurn,
    error::Fault,
    journal::MemoryJournal,
    reviewer::{ReviewRequest, Reviewer},
};
pub(crate) use desk::Desk;
use pool::Pool;
pub(crate) use prompt::INSTRUCTIONS;

/// A reviewer that asks a model. It has its own in-memory orchestrator without tools; turns are not retried, because
/// the review itself is.
pub(crate) struct ModelReviewer {
    orchestrator: Orchestrator,
    journal: Arc<MemoryJournal>,
    desk: Arc<Desk>,
    pool: Arc<Pool>,
    /// The id of the model or route.
    model: String,
}

impl ModelReviewer {
    /// `orchestrator` must use `journal`, and `desk` must observe it.
    pub(crate) fn new(
        orchestrator: Orchestrator,
        journal: Arc<MemoryJournal>,
        desk: Arc<Desk>,
        model: String,
    ) -> Self {
        Self { orchestrator, journal, desk, pool: Arc::default(), model }
    }
}

#[async_trait]
impl Reviewer for ModelReviewer {
    async fn review(&self, request: ReviewRequest) -> ReviewAnswer {
        let (id, reviews) = self.pool.take(&request.conversation_id);
        // If the review ends early, for whatever reason, its conversation is not used again.
        let mut used = Used {
            orchestrator: self.orchestrator.clone(),
            journal: self.journal.clone(),
            desk: self.desk.clone(),
            drops: Some(id.clone()),
            id: id.clone(),
        };
        let answer = self.desk.expect(&id);
        let off = RetrySettings { enabled: Some(false), ..RetrySettings::default() };
        let start =
            StartTurn::new(prompt::of(&request)).conversation(id.clone()).model(&self.model).retry(off);
        if let Err(error) = self.orchestrator.start(start).await {
            return ReviewAnswer::Failed(not_asked(&error));
        }
        let answer = match answer.await {
            Ok(answer) => answer.map_or_else(ReviewAnswer::Failed, |text| verdict::read(&text)),
            Err(_) => ReviewAnswer::Failed(Failure::new(Category::Internal, false, "the reviewer broke")),
        };
        if matches!(answer, ReviewAnswer::Assessed(_)) {
            used.drops = self.pool.give_back(&request.conversation_id, id, reviews + 1);
        }
        answer
    }
}

/// The failure when the reviewer could not be asked; another attempt would not help.
fn not_asked(error: &Error) -> Failure {
    let category = match error.fault() {
        Fault::Caller => Category::InvalidRequest,
        _ => Category::Internal,
    };
    Failure::new(category, false, format!("the reviewer could not be asked: {error}"))
}

/// A conversation with a review in progress.
struct Used {
    orchestrator: Orchestrator,
    journal: Arc<MemoryJournal>,
    desk: Arc<Desk>,
    id: ConversationId,
    /// The conversation to drop afterwards: this one, unless it can be reused.
    drops: Option<ConversationId>,
}

impl Drop for Used {
    fn drop(&mut self) {
        self.desk.forget(&self.id);
        let Some(id) = self.drops.take() else { return };
        let (orchestrator, journal) = (self.orchestrator.clone(), self.journal.clone());
        // Without a runtime there is no turn to stop.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                // Fails if the conversation never began.
                let _ = orchestrator.close(&id).await;
                journal.forget(&id);
            });
        }
    }
}
