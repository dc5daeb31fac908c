//! Inputs: facts that a turn is told.

use alloc::string::String;

use everturn_wire::{Failure, OutputStream, QueuedMessage};

use crate::{Op, StreamEvent};

/// A fact. One that does not apply (any more) changes nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A provider call yielded something.
    Provider(Op, StreamEvent),
    /// A running tool printed something.
    ToolOutput {
        /// The call.
        call_id: String,
        /// Which of its streams.
        stream: OutputStream,
        /// What it printed.
        data: String,
    },
    /// A tool is done.
    ToolDone {
        /// The step that asked for it.
        step: u32,
        /// The call.
        call_id: String,
        /// What it answered.
        answer: ToolAnswer,
    },
    /// The wait before this call is over. Too early, it changes nothing.
    Tick(Op),
    /// End the turn.
    Abort,
    /// End the turn if its step is being retried: it waits, or was asked again and has shown nothing yet.
    AbortRetry,
    /// Skip the wait for a retry; or ask again at once where watchers were told that the provider is silent, and nothing of
    /// its answer was shown.
    RetryNow,
    /// Inject this message at the next tool-result boundary.
    Steer(QueuedMessage),
    /// Take that message back.
    Unsteer {
        /// The message.
        message_id: String,
    },
    /// Something on our own side broke, such as a panic in a tool: ends the turn with this failure.
    Fault(Failure),
    /// The process is about to end in good order: what is known so far is to be saved.
    Checkpoint,
    /// The turn was restored after its process ended. Always the first input of a restored turn.
    Recover,
}

/// What a tool answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// What the model is told.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
}

impl ToolAnswer {
    /// A success.
    pub fn ok(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: false }
    }

    /// A failure that the model is told of.
    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true }
    }
}
