//! Commands for the running turn.

use everturn_kernel::Input;
use tokio::sync::oneshot;

/// Messages that may wait in a conversation.
pub(super) const MAX_QUEUE: usize = 32;

/// A command for the running turn.
pub(crate) struct Control {
    pub(crate) input: Input,
    /// Answered when the turn has taken the command in and what came of it is durable.
    pub(crate) taken: Option<oneshot::Sender<()>>,
    /// The model or route with which the turn is to go on, by its id, where it is told to [`Input::RetryNow`].
    pub(crate) model: Option<String>,
    /// Close the conversation when the turn is sealed.
    pub(crate) closes: bool,
    /// It is for turns that obey the conversation's retry settings only.
    pub(crate) by_switch: bool,
}

impl From<Input> for Control {
    /// One that nobody waits for.
    fn from(input: Input) -> Self {
        Self { input, taken: None, model: None, closes: false, by_switch: false }
    }
}

impl Control {
    /// Whether it matters after the turn that it came in for.
    pub(super) fn outlives_a_turn(&self) -> bool {
        self.closes || matches!(self.input, Input::Steer(_) | Input::Unsteer { .. })
    }
}
