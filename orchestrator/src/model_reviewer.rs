//! A reviewer that asks a model, in private conversations that are not shown to people.

mod pending_reviews;
mod pool;
mod prompt;
mod verdict;

use std::sync::Arc;

use async_trait::async_trait;
use everturn_kernel::ReviewAnswer;
use everturn_wire::{Category, ConversationId, Failure};

use crate::{
    Error, Orchestrator, RetryTurn, StartTurn,
    error::Fault,
    journal::MemoryJournal,
    reviewer::{ReviewRequest, Reviewer},
};
use pending_reviews::Answer;
pub(crate) use pending_reviews::PendingReviews;
use pool::{Kept, Pool};
pub(crate) use prompt::INSTRUCTIONS;

/// A reviewer that asks a model. It has its own in-memory orchestrator without tools; turns are not retried, because
/// the review itself is; on a route they move to another target.
pub(crate) struct ModelReviewer {
    orchestrator: Orchestrator,
    journal: Arc<MemoryJournal>,
    pending: Arc<PendingReviews>,
    pool: Arc<Pool>,
    /// The id of the model or route.
    model: String,
}

impl ModelReviewer {
    /// `orchestrator` must use `journal`, and `pending` must observe it.
    pub(crate) fn new(
        orchestrator: Orchestrator,
        journal: Arc<MemoryJournal>,
        pending: Arc<PendingReviews>,
        model: String,
    ) -> Self {
        Self { orchestrator, journal, pending, pool: Arc::default(), model }
    }
}

#[async_trait]
impl Reviewer for ModelReviewer {
    async fn review(&self, request: ReviewRequest) -> ReviewAnswer {
        let kept = self.pool.take(&request.conversation_id);
        let is_used = kept.reviews > 0;
        match self.ask(&request, kept).await {
            // Its earlier reviews fill the conversation. Another one has room for this call.
            ReviewAnswer::Failed(failure) if is_used && failure.category == Category::ContextOverflow => {
                self.ask(&request, Kept::new(&request.conversation_id)).await
            }
            answer => answer,
        }
    }
}

impl ModelReviewer {
    /// Asks in this conversation, which returns to the pool unless the review ends early or overflows it.
    async fn ask(&self, request: &ReviewRequest, kept: Kept) -> ReviewAnswer {
        // If the review ends early, for whatever reason, its conversation is not used again.
        let mut used = Used {
            orchestrator: self.orchestrator.clone(),
            journal: self.journal.clone(),
            pending: self.pending.clone(),
            drops: Some(kept.id.clone()),
            id: kept.id.clone(),
        };
        let answer = self.pending.expect(&kept.id, request.switches.clone());
        if let Err(error) = self.begin(&kept, prompt::of(request)).await {
            return ReviewAnswer::Failed(not_asked(&error));
        }
        let answer = match answer.await {
            Ok(Answer::Text(text)) => verdict::read(&text),
            Ok(Answer::Held(failure)) => ReviewAnswer::Held(failure),
            Ok(Answer::Failed(failure)) => ReviewAnswer::Failed(failure),
            Err(_) => {
                let broke = Failure::new(Category::Internal, false, "the reviewer broke");
                return ReviewAnswer::Failed(broke);
            }
        };
        let is_full =
            matches!(&answer, ReviewAnswer::Failed(failure) if failure.category == Category::ContextOverflow);
        if !is_full {
            let is_open = !matches!(answer, ReviewAnswer::Assessed(_));
            let reviews = kept.reviews + u32::from(!is_open);
            used.drops = self.pool.give_back(&request.conversation_id, Kept { reviews, is_open, ..kept });
        }
        answer
    }

    /// Begins the review: after the earlier ones, or in the place of the last one if that reached no verdict, so that
    /// the model sees each call once and no answer that could not be read.
    async fn begin(&self, kept: &Kept, prompt: String) -> Result<(), Error> {
        let last = match kept.is_open {
            true => self.orchestrator.metrics(&kept.id).await?.pop().and_then(|turn| turn.first_seq),
            false => None,
        };
        match last {
            Some(seq) => {
                let again = RetryTurn::message(seq).text(prompt).model(&self.model);
                self.orchestrator.retry_with(&kept.id, again).await?;
            }
            None => {
                let start = StartTurn::new(prompt).conversation(kept.id.clone()).model(&self.model);
                self.orchestrator.start(start).await?;
            }
        }
        Ok(())
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
    pending: Arc<PendingReviews>,
    id: ConversationId,
    /// The conversation to drop afterwards: this one, unless it can be reused.
    drops: Option<ConversationId>,
}

impl Drop for Used {
    fn drop(&mut self) {
        self.pending.forget(&self.id);
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
