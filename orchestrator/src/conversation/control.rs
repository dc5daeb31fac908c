//! Commands for the running turn.

use everturn_kernel::Input;
use everturn_wire::TurnId;
use tokio::sync::oneshot;

/// Maximum number of messages in a conversation's queue.
pub(super) const MAX_QUEUE: usize = 32;

/// A command for the running turn.
pub(crate) struct Control {
    pub(crate) input: Input,
    /// Replied to when the turn has handled the command and its result is durable.
    pub(crate) taken: Option<oneshot::Sender<()>>,
    /// The id of the model or route to continue with, for [`Input::RetryNow`].
    pub(crate) model: Option<String>,
    /// Close the conversation when the turn is sealed.
    pub(crate) closes: bool,
    /// Whether the command is only for turns that follow the conversation's retry settings.
    pub(crate) by_switch: bool,
    /// The only turn that the command is for; `None` = whichever runs.
    pub(crate) turn: Option<TurnId>,
}

impl From<Input> for Control {
    /// Creates a command without a reply.
    fn from(input: Input) -> Self {
        Self { input, taken: None, model: None, closes: false, by_switch: false, turn: None }
    }
}

impl Control {
    /// Whether the command still matters after its turn is sealed.
    pub(super) fn outlives_a_turn(&self) -> bool {
        self.closes || matches!(self.input, Input::Steer(_) | Input::Unsteer { .. })
    }
}
