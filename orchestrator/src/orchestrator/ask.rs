//! Asks a model beside all conversations.

use everturn_wire::{Chunk, ConversationId, Failure, Message, Priority, Role};

use super::Orchestrator;
use crate::session::{SideCall, Unanswered};

impl Orchestrator {
    /// Asks a model or route, given by its id, and returns the text of its answer: up to 64 KiB, of a longer one the beginning. The
    /// question is a call in the background, counted for the caller of this conversation. It is asked once, but moves along its
    /// route, and does not wait. Conversations know nothing of it. Dropping the future cancels it.
    ///
    /// # Errors
    /// When there is no answer, also because the call would have had to wait.
    pub async fn ask(
        &self,
        on_behalf_of: &ConversationId,
        model: &str,
        question: String,
    ) -> Result<String, Failure> {
        let asked = SideCall {
            ports: &self.ports,
            model,
            messages: vec![Message::new(Role::User, [Chunk::Text { text: question }])],
            caller: on_behalf_of.caller_name(),
            priority: Priority::Background,
            account: self.ports.memory.open(),
            switches: None,
        };
        asked.ask().await.map_err(|(Unanswered::Failed(failure) | Unanswered::Held(failure))| failure)
    }
}
