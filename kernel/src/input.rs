//! Inputs: the facts that drive a turn.

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{Failure, Image, OutputStream, QueuedMessage};

use crate::{Answer, Op, ReviewAnswer, StreamEvent};

/// A fact. One that does not apply, or no longer applies, changes nothing.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Input {
    /// A provider call yielded an event.
    Provider(Op, StreamEvent),
    /// A running tool produced output.
    ToolOutput {
        /// The id of the call.
        call_id: String,
        /// The output stream.
        stream: OutputStream,
        /// The output.
        data: String,
    },
    /// A tool finished.
    ToolDone {
        /// The step that made the call.
        step: u32,
        /// The id of the call.
        call_id: String,
        /// The tool's answer.
        answer: ToolAnswer,
    },
    /// A person answered a request for approval.
    Answer(Box<Answer>),
    /// An attempt of a review ended.
    Reviewed {
        /// The step that made the call.
        step: u32,
        /// The id of the call.
        call_id: String,
        /// The number of the attempt.
        attempt: u32,
        /// The reviewer's answer.
        answer: Box<ReviewAnswer>,
    },
    /// The moment named by [`Want::Tools`](crate::Want::Tools) or [`Want::Person`](crate::Want::Person) came. An early one
    /// changes nothing.
    Due {
        /// The step that made the calls.
        step: u32,
    },
    /// The wait before this call ended. An early tick changes nothing.
    Tick(Op),
    /// Stop the turn.
    Abort,
    /// Stop the turn if its step is being retried: the retry is waiting, or has shown nothing yet.
    AbortRetry,
    /// Skip the wait for a retry. Also repeats the call at once if subscribers were told that the provider is silent
    /// and nothing of its answer was shown.
    RetryNow,
    /// As [`RetryNow`](Self::RetryNow), but asks the target of this index from now on: later steps begin with it, too, and
    /// the schedule moves on only when it fails. Changes nothing where the turn has no such target.
    GoTo(usize),
    /// What the call was put off for is over: make it now. Changes nothing where the turn waits for something else.
    Release,
    /// Stop the turn if [`RetryNow`](Self::RetryNow) would apply: a turn with another model takes its place.
    MoveAway,
    /// Inject this message at the next tool-result boundary.
    Steer(QueuedMessage),
    /// Remove that message from the queue.
    Unsteer {
        /// The id of the message.
        message_id: String,
    },
    /// An internal fault, such as a panic in a tool. Ends the turn with this failure.
    Fault(Failure),
    /// The next save was refused for good, and the turn restored as it was saved last. Takes back what was published
    /// since, and ends the turn with this failure.
    Unsaved(Failure),
    /// The process is about to shut down: saves all that is known so far.
    Checkpoint,
    /// The turn was restored after its process ended. Always the first input of a restored turn. A new step may begin with
    /// it: hand in the turn's own schedule.
    Recover,
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The text that the model receives.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Images that go with the text, where the model's API takes them: the text says what they are, for the others.
    pub images: Vec<Image>,
}

impl ToolAnswer {
    /// Creates a successful answer.
    pub fn ok(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: false, images: Vec::new() }
    }

    /// Creates a failed answer, which the model receives.
    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, images: Vec::new() }
    }
}
