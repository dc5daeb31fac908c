//! Inputs: the facts that drive a turn.

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{EventBody, Failure, Image, OutputStream, QueuedMessage};

use crate::{Answer, Op, ReviewAnswer, ReviewerSwitch, StreamEvent};

/// A fact. An input that does not apply, or no longer applies, changes nothing.
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
    /// A running tool asks a person, or its question was settled. Published, nothing else.
    ToolAsks {
        /// The id of the call.
        call_id: String,
        /// The event.
        event: Box<EventBody>,
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
    /// During an attempt of a review, the reviewer moved to another target. Published, nothing else.
    ReviewerSwitched(Box<ReviewerSwitch>),
    /// The moment named by [`Want::Tools`](crate::Want::Tools) or [`Want::Person`](crate::Want::Person) has come. An
    /// early input changes nothing.
    Due {
        /// The step that made the calls.
        step: u32,
    },
    /// The wait before this call is over. An early tick changes nothing.
    Tick(Op),
    /// Stop the turn.
    Abort,
    /// Stop the turn if it is retrying: it waits for a retry, or the retry has shown nothing yet.
    AbortRetry,
    /// Skip the wait for a retry. If subscribers were told that the provider is silent and nothing of its answer was
    /// shown, repeat the call at once.
    RetryNow,
    /// Like [`RetryNow`](Self::RetryNow), but ask the target with this index from now on. Later steps begin with it
    /// too, and the schedule leaves it only when it fails. Changes nothing if the turn has no such target.
    GoTo(usize),
    /// The reason for putting the call off is gone: make it now. Changes nothing unless the call is on hold.
    Release,
    /// Stop the turn if [`RetryNow`](Self::RetryNow) would apply, because a turn with another model replaces it.
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
    /// The next save was permanently refused, and the turn was restored from its last save. Withdraws what was
    /// published since, and ends the turn with this failure.
    Unsaved(Failure),
    /// The process is about to shut down: save everything known so far. Also sent to a restored turn that had not run since its
    /// last restore. Either way the step did not crash its process, so its recoveries are counted anew.
    Checkpoint,
    /// Save the turn although nothing has changed: the save proves that its host still drives the turn.
    Save,
    /// The turn was restored after its process ended. Always the first input of a restored turn. A step may begin with
    /// it, so pass the turn's own schedule.
    Recover,
}

/// The answer of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolAnswer {
    /// The text that the model receives.
    pub content: String,
    /// Whether the tool failed.
    pub is_error: bool,
    /// Images that go with the text. The text describes them for models whose API does not accept images.
    pub images: Vec<Image>,
}

impl ToolAnswer {
    /// Creates a successful answer.
    pub fn ok(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: false, images: Vec::new() }
    }

    /// Creates a failed answer. The model receives it.
    pub fn error(content: impl Into<String>) -> Self {
        Self { content: content.into(), is_error: true, images: Vec::new() }
    }
}
