//! What is left to do after a turn.

use everturn_kernel::Input;
use everturn_wire::{ConversationStatus, QueuedMessage};
use tokio::sync::oneshot;

use super::Inbox;

/// What is left to do after a turn.
pub(crate) enum AfterTurn {
    /// Nothing: the seat was left.
    Nothing,
    /// These messages came while the turn was being sealed: the first one is the next turn.
    Turn(LeftoverMessages),
    /// The conversation's status is another one by now: commands came while the turn was being sealed.
    Status(ConversationStatus),
}

/// Messages that came too late for a turn.
#[derive(Default)]
pub(crate) struct LeftoverMessages {
    pub(crate) messages: Vec<QueuedMessage>,
    /// To be answered when they are durable.
    pub(crate) taken: Vec<oneshot::Sender<()>>,
}

impl LeftoverMessages {
    /// Takes in what came for the turn that is over: only messages matter any more. Says whether the conversation is to
    /// be closed.
    pub(crate) fn take_in(&mut self, inbox: &mut Inbox) -> bool {
        let mut closes = false;
        while let Some(control) = inbox.take() {
            closes |= control.closes;
            match control.input {
                Input::Steer(message) => {
                    self.messages.push(message);
                    self.taken.extend(control.taken);
                }
                Input::Unsteer { message_id } => {
                    let before = self.messages.len();
                    self.messages.retain(|waiting| waiting.message_id != message_id);
                    // Else it was said already: that is not answered.
                    self.taken.extend(control.taken.filter(|_| self.messages.len() < before));
                }
                _ => {}
            }
        }
        closes
    }

    /// Nothing is left to do about them. Dropped instead, they are not answered: they came too late for a conversation
    /// that is closed, and open it again.
    pub(super) fn answer(self) {
        for taken in self.taken {
            let _ = taken.send(());
        }
    }
}
