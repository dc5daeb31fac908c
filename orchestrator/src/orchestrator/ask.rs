//! Asks a model beside all conversations.

use everturn_wire::{Category, Chunk, ConversationId, Failure, Message, Priority, Role};

use super::Orchestrator;
use crate::session::{SideCall, Unanswered};

impl Orchestrator {
    /// Asks a model or route, given by its id, and returns the text of its answer; if that is longer than `most` bytes, its beginning
    /// with an ellipsis. The question is a background call, charged to the caller of this conversation. It is asked once (on a
    /// route, until a target answers), and does not wait. Conversations and observers do not see it. Dropping the future cancels it.
    ///
    /// # Errors
    /// When there is no answer, also because the call would have had to wait, or during a shutdown.
    pub async fn ask(
        &self,
        on_behalf_of: &ConversationId,
        model: &str,
        question: String,
        most: usize,
    ) -> Result<String, Failure> {
        let open = self.ports.shutdown.check_open();
        open.map_err(|error| Failure::new(Category::Unknown, false, error.to_string()))?;
        let asked = SideCall {
            ports: &self.ports,
            model,
            messages: vec![Message::new(Role::User, [Chunk::Text { text: question }])],
            caller: on_behalf_of.caller_name(),
            priority: Priority::Background,
            most,
            switches: None,
        };
        asked.ask().await.map_err(|(Unanswered::Failed(failure) | Unanswered::Held(failure))| failure)
    }
}
