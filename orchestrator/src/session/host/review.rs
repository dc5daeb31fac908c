//! Has a tool call reviewed.

mod prompt;
mod verdict;

use std::sync::Arc;

use everturn_kernel::ReviewAnswer;
use everturn_wire::{Category, Chunk, Message, Priority, Role};

use crate::{
    reviewer::ReviewRequest,
    session::{
        Ports,
        review::{EarlierReviews, ModelReviewer, Reviews},
        side_call::{SideCall, Unanswered},
    },
};

/// Maximum length of an answer, in bytes. A longer one is no assessment.
const MAX_ANSWER: usize = 64 << 10;

impl Reviews {
    pub(super) async fn review(&self, ports: &Arc<Ports>, request: ReviewRequest) -> ReviewAnswer {
        match self {
            Self::Own(reviewer) => reviewer.review(request).await,
            Self::Model(reviewer) => reviewer.review(ports, request).await,
        }
    }
}

impl ModelReviewer {
    async fn review(&self, ports: &Arc<Ports>, request: ReviewRequest) -> ReviewAnswer {
        let earlier = self.pool.take(&request.conversation_id);
        let has_any = !earlier.messages.is_empty();
        match self.ask(ports, &request, earlier).await {
            // Its earlier reviews fill its context. Without them there is room for this call.
            ReviewAnswer::Failed(failure) if has_any && failure.category == Category::ContextOverflow => {
                self.ask(ports, &request, EarlierReviews::default()).await
            }
            answer => answer,
        }
    }

    /// Asks once. The earlier reviews return to the pool, with this one if it reached a verdict, unless there is no room for it
    /// or nobody waits for its end: then they are dropped.
    async fn ask(
        &self,
        ports: &Arc<Ports>,
        request: &ReviewRequest,
        mut earlier: EarlierReviews,
    ) -> ReviewAnswer {
        let text = |role, text: String| Message::new(role, [Chunk::Text { text }]);
        let question = text(Role::User, prompt::of(request));
        let instructions = Chunk::System { text: prompt::INSTRUCTIONS.to_owned(), keeps_from: None };
        let mut messages = vec![Message::new(Role::System, [instructions])];
        messages.extend(earlier.messages.iter().chain([&question]).cloned());
        let asked = SideCall {
            ports,
            model: &self.model,
            messages,
            caller: request.conversation_id.caller_name(),
            priority: Priority::Interactive,
            most: MAX_ANSWER,
            switches: Some(request.switches.clone()),
        };
        let answer = match asked.ask().await {
            Ok(answer) => {
                let verdict = verdict::read(&answer);
                if matches!(verdict, ReviewAnswer::Assessed(_)) {
                    earlier.push(question, text(Role::Assistant, answer));
                }
                verdict
            }
            Err(Unanswered::Held(failure)) => ReviewAnswer::Held(failure),
            Err(Unanswered::Failed(failure)) if failure.category == Category::ContextOverflow => {
                return ReviewAnswer::Failed(failure);
            }
            Err(Unanswered::Failed(failure)) => ReviewAnswer::Failed(failure),
        };
        self.pool.give_back(&request.conversation_id, earlier);
        answer
    }
}
