//! Commands for the running turn.

use everturn_kernel::Input;
use tokio::sync::oneshot;

use super::{Conversation, Writer};
use crate::Error;

/// Messages that may wait in a conversation.
const MAX_QUEUE: usize = 32;

/// A command for the running turn.
pub(crate) struct Control {
    pub(crate) input: Input,
    /// Answered when the turn has taken the command in and what came of it is durable.
    pub(crate) taken: Option<oneshot::Sender<()>>,
    /// Close the conversation when the turn is sealed.
    pub(crate) closes: bool,
}

impl From<Input> for Control {
    /// One that nobody waits for.
    fn from(input: Input) -> Self {
        Self { input, taken: None, closes: false }
    }
}

impl Conversation {
    /// Whether that message waits in the queue, as last committed.
    pub(crate) fn waits(&self, message_id: &str) -> bool {
        self.state().queue.iter().any(|waiting| waiting.message_id == message_id)
    }

    /// Sends a command to the running turn. Gives it back when there is none.
    pub(crate) fn send(&self, control: Box<Control>) -> Result<Result<(), Error>, Box<Control>> {
        let mut state = self.state();
        let waiting = state.queue.len();
        let Some(writer) = &mut state.writer else { return Err(control) };
        // Whatever is on its way counts as a message.
        if matches!(control.input, Input::Steer(_)) && waiting + writer.on_their_way() >= MAX_QUEUE {
            return Ok(Err(Error::QueueFull { id: self.id.clone(), limit: MAX_QUEUE }));
        }
        Ok(writer.take(control).map_err(|()| Error::Busy { id: self.id.clone() }))
    }
}

impl Writer {
    /// Commands that no turn has taken in yet.
    pub(super) fn on_their_way(&self) -> usize {
        self.control.max_capacity() - self.control.capacity()
    }

    pub(super) fn take(&mut self, control: Box<Control>) -> Result<(), ()> {
        self.closing |= control.closes;
        self.control.try_send(control).map_err(drop)
    }
}
