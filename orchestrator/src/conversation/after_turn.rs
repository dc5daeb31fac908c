//! What remains to be done after a turn.

use everturn_kernel::Input;
use everturn_wire::{ConversationStatus, QueuedMessage};
use tokio::sync::oneshot;

use super::Inbox;

/// What remains to be done after a turn.
pub(crate) enum AfterTurn {
    /// Nothing: the seat was left.
    Nothing,
    /// Messages arrived while the turn was being sealed; the first one becomes the next turn.
    Turn(LeftoverMessages),
    /// The conversation's status must change first, as commands arrived while the turn was being sealed.
    Status(ConversationStatus),
}

/// Messages that arrived too late for a turn.
#[derive(Default)]
pub(crate) struct LeftoverMessages {
    pub(crate) messages: Vec<QueuedMessage>,
    /// Whether no saved event names some of the messages yet.
    pub(crate) are_new: bool,
    /// Replied to when the messages are durable.
    pub(crate) taken: Vec<oneshot::Sender<()>>,
}

impl LeftoverMessages {
    /// Drains the commands for the sealed turn, keeping only messages. Returns whether the conversation is to be
    /// closed.
    pub(crate) fn take_in(&mut self, inbox: &mut Inbox) -> bool {
        let mut closes = false;
        while let Some(control) = inbox.take() {
            closes |= control.closes;
            match control.input {
                Input::Steer(message) => {
                    // A client that got no reply may send it again.
                    if !self.messages.iter().any(|waiting| waiting.message_id == message.message_id) {
                        self.messages.push(message);
                        self.are_new = true;
                    }
                    self.taken.extend(control.taken);
                }
                Input::Unsteer { message_id } => {
                    let before = self.messages.len();
                    self.messages.retain(|waiting| waiting.message_id != message_id);
                    // A message that was already used cannot be withdrawn: no reply.
                    self.taken.extend(control.taken.filter(|_| self.messages.len() < before));
                }
                _ => {}
            }
        }
        closes
    }

    /// Sends the replies when nothing remains to be done. If dropped instead, none is sent: the messages came too late
    /// for a conversation that is closed, and they reopen it.
    pub(super) fn answer(self) {
        for taken in self.taken {
            let _ = taken.send(());
        }
    }
}
