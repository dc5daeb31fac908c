//! `/new` and `/conversations`: goes on with another conversation.

use crate::Interrupt;
use anyhow::Result;
use everturn_wire::ConversationId;

use super::{Chat, Ending, Link, host::Found, view::Line};

/// The conversation to go on with.
pub(super) enum Destination {
    New,
    Of(ConversationId),
}

impl Chat {
    /// What follows a turn that was shown: goes to the conversation that was chosen meanwhile, if one was, and shows its
    /// turn if it runs. Returns whether the person leaves.
    pub(super) async fn follow(&mut self, mut ending: Ending, interrupt: &mut Interrupt) -> Result<bool> {
        while let Some(destination) = self.moves.take() {
            ending = self.go_to(destination, interrupt).await?;
        }
        Ok(ending == Ending::Left || self.leaves)
    }

    /// Goes on with a conversation: shows its turn if it runs, else its last exchange.
    async fn go_to(&mut self, destination: Destination, interrupt: &mut Interrupt) -> Result<Ending> {
        let found = match destination {
            Destination::New => Found::unnamed(),
            Destination::Of(id) => self.host.found(id).await?,
        };
        // A connection continues where it was; the new one belongs to the other conversation.
        self.link = Link::open(&self.host.server, false).await?;
        let Found { id, last, is_active, is_new } = found;
        (self.conversation_id, self.last) = (id, last);
        (self.is_begun, self.has_moved) = (!is_new, true);
        if is_new {
            self.view.line(&Line::Note("A new conversation.".to_owned()))?;
            return Ok(Ending::Answered);
        }
        // It keeps its own model.
        self.model = None;
        if is_active {
            return self.watch(false, interrupt).await;
        }
        self.recall().await?;
        Ok(Ending::Answered)
    }
}
