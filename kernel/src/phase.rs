//! The phases of a turn, each named for what it waits for.
//!
//! ```text
//!            begin
//!              |
//!              v      a failure that can pass, before content
//!  .----> Streaming -----------------------------------> Backoff
//!  |       |   |  ^                                       |   |
//!  |       |   |  '------- tick, or "retry now" ----------'   |
//!  |       |   |                                              |
//!  |       |   '-- no tool calls, or a failure --.            | abort
//!  | tool  |                                     v            |
//!  | calls v             abort, max steps     Sealed <--------'
//!  '---- Tools ---------------------------------^
//!    all results there
//! ```

use alloc::{boxed::Box, string::String, vec::Vec};

use everturn_wire::{Chunk, DoneReason, Echo, Failure, FinalReport, Usage};

use crate::{
    Ledger, Millis, Op,
    call::{CallState, OpenCall},
};

/// What a turn waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    /// The provider.
    Streaming(Streaming),
    /// The clock.
    Backoff(Backoff),
    /// Tool results.
    Tools(Tools),
    /// Nothing: final.
    Sealed(Outcome),
}

/// Waiting for the provider.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Streaming {
    pub(crate) op: Op,
    pub(crate) ledger: Ledger,
    /// When this call was wanted.
    pub(crate) since: Millis,
    /// When its first token arrived; set once content has arrived.
    pub(crate) first_token_at: Option<Millis>,
    /// The content so far, in order.
    pub(crate) pieces: Vec<Piece>,
    /// The tool calls so far.
    pub(crate) calls: Vec<OpenCall>,
    /// The last token counts received.
    pub(crate) usage: Option<Usage>,
    /// Whether subscribers were told that it is silent.
    pub(crate) is_silent: bool,
    /// Whether a person asked for this call: it is made whatever others found out.
    pub(crate) by_person: bool,
}

impl Streaming {
    pub(crate) fn new(op: Op, ledger: Ledger, now: Millis) -> Self {
        Self {
            op,
            ledger,
            since: now,
            first_token_at: None,
            pieces: Vec::new(),
            calls: Vec::new(),
            usage: None,
            is_silent: false,
            by_person: false,
        }
    }

    /// Whether this is a retry that has shown nothing yet.
    pub(crate) fn is_retry(&self) -> bool {
        self.ledger.retries > 0 && self.first_token_at.is_none()
    }

    /// Whether anything arrived that a client may have seen: a retry would show it twice.
    pub(crate) fn has_content(&self) -> bool {
        self.first_token_at.is_some() || self.usage.is_some()
    }
}

/// A run of streamed text of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// Reasoning. With an echo it is complete, and its text may be empty.
    Thinking {
        text: String,
        echo: Option<Echo>,
    },
}

impl Piece {
    pub(crate) fn into_chunk(self) -> Chunk {
        match self {
            Self::Text(text) => Chunk::Text { text },
            Self::Thinking { text, echo } => Chunk::Thinking { text, echo },
        }
    }

    /// Returns the visible text.
    pub(crate) fn words(&self) -> &str {
        match self {
            Self::Text(text) | Self::Thinking { text, .. } => text,
        }
    }
}

/// Waiting for the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Backoff {
    /// The call that comes after the wait.
    pub(crate) op: Op,
    pub(crate) ledger: Ledger,
    /// When the wait ends.
    pub(crate) resume_at: Millis,
    /// Decided length of the wait, in milliseconds: a clock that was set back cannot make it longer.
    pub(crate) decided_ms: u64,
    /// The call before it was put off: it is no retry.
    pub(crate) held: bool,
}

/// Waiting for tool results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tools {
    pub(crate) step: u32,
    pub(crate) calls: Vec<OpenCall>,
}

impl Tools {
    /// When the turn must look at its checks again.
    pub(crate) fn due_at(&self) -> Option<Millis> {
        let due = self.calls.iter().filter_map(|open| match open.state {
            CallState::Asking(asking) => asking.until,
            CallState::Reviewing(review) => Some(review.due_at()),
            CallState::Pending | CallState::Running { .. } | CallState::Done(_) => None,
        });
        due.min()
    }
}

/// The outcome of a turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The reason.
    pub reason: DoneReason,
    /// The failure that ended it, if one did.
    pub failure: Option<Failure>,
    /// The report that the turn had to end with, if it had to.
    pub report: Option<Box<FinalReport>>,
}
