//! Reviewers: decide about tool calls in a person's place.

use std::time::Duration;

use async_trait::async_trait;
use everturn_kernel::{Input, ReviewAnswer, ReviewerSwitch, ToolSpec};
use everturn_wire::{ConversationId, TurnId, Value};
use tokio::sync::mpsc;

/// Decides whether a tool call may run, before it runs. Each call is one attempt: the turn repeats an attempt after a
/// transient failure, up to three attempts in all, within one deadline.
#[async_trait]
pub trait Reviewer: Send + Sync + 'static {
    /// Reviews a call. The future is dropped at the deadline and when the turn is stopped. Implementations must not
    /// retry.
    async fn review(&self, request: ReviewRequest) -> ReviewAnswer;
}

/// A tool call to be reviewed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ReviewRequest {
    /// The conversation of the call.
    pub conversation_id: ConversationId,
    /// The turn of the call.
    pub turn_id: TurnId,
    /// The id of the call, unique in its step.
    pub call_id: String,
    /// The tool.
    pub tool: ToolSpec,
    /// The arguments, in full.
    pub input: Value,
    /// The user's latest messages in the conversation, oldest first; long ones are cut in the middle.
    pub said: Vec<String>,
    /// The number of the attempt, from 0.
    pub attempt: u32,
    /// Time left until the review's deadline.
    pub left: Duration,
    /// Tells subscribers when the reviewer moves to another target.
    pub switches: Switches,
}

/// Tells subscribers of a turn that its reviewer moves to another target.
#[derive(Clone, Debug)]
pub struct Switches {
    pub(crate) step: u32,
    pub(crate) call_id: String,
    pub(crate) inbox: mpsc::Sender<Box<Input>>,
}

impl Switches {
    /// Publishes `target-switched` with the role `reviewer`. Dropped if the turn is far behind, or the attempt is over.
    pub fn tell(&self, from: impl Into<String>, to: impl Into<String>, reason: impl Into<String>) {
        let (step, call_id) = (self.step, self.call_id.clone());
        let (from, to, reason) = (from.into(), to.into(), reason.into());
        let switch = ReviewerSwitch { step, call_id, from, to, reason };
        let _ = self.inbox.try_send(Box::new(Input::ReviewerSwitched(Box::new(switch))));
    }
}
