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

use everturn_wire::{Chunk, DoneReason, Echo, Failure, FinalReport, Reported, Usage};
use serde::{Deserialize, Serialize};

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
    /// When this call was first wanted.
    pub(crate) since: Millis,
    /// When the first content arrived; `None` before.
    pub(crate) first_token_at: Option<Millis>,
    /// The content so far, in order.
    pub(crate) pieces: Vec<Piece>,
    /// The tool calls so far.
    pub(crate) calls: Vec<OpenCall>,
    /// The places of calls that are yet to come, by id: the number of pieces before each.
    pub(crate) places: Vec<(String, usize)>,
    /// The latest token counts received.
    pub(crate) usage: Option<Usage>,
    /// What else the provider reports of its answer. Not saved: it comes at the end.
    pub(crate) reported: Option<Box<Reported>>,
    /// Whether the call has ended, and was counted. Not saved: something else is waited for then.
    pub(crate) is_over: bool,
    /// Whether subscribers were told that the provider is silent.
    pub(crate) is_silent: bool,
    /// Whether a person asked for this call. It is then made regardless of the health of its target.
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
            places: Vec::new(),
            usage: None,
            reported: None,
            is_over: false,
            is_silent: false,
            by_person: false,
        }
    }

    /// Whether this call is a retry that has shown nothing yet.
    pub(crate) fn is_retry(&self) -> bool {
        self.ledger.retries > 0 && self.first_token_at.is_none()
    }

    /// Whether anything arrived that a client may have seen. A retry would show it twice.
    pub(crate) fn has_content(&self) -> bool {
        self.first_token_at.is_some() || self.usage.is_some()
    }
}

/// A run of streamed text of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// Reasoning. It is complete once it has an echo, and its text may be empty.
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
    /// Decided length of the wait, in milliseconds. A clock that was set back cannot make the wait longer.
    pub(crate) decided_ms: u64,
    /// The call was put off before it was made, so it is not a retry.
    pub(crate) held: bool,
    pub(crate) charge: Charge,
}

/// The account that a wait is charged to: what is left of one that ends early is taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Charge {
    /// The budget of the step.
    #[default]
    Budget,
    /// The step's waits beyond the budget, which are counted separately.
    Wall,
    /// Nothing, because there is no network, or its caller is held back.
    Nothing,
}

/// Waiting for tool results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tools {
    pub(crate) step: u32,
    pub(crate) calls: Vec<OpenCall>,
    /// What happened in the step, if the turn must report: a failed reply is followed by another call of the step.
    /// Boxed because most turns need none.
    pub(crate) ledger: Option<Box<Ledger>>,
}

impl Tools {
    /// Returns when the turn must look at its checks again.
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
    /// The reason why it ended.
    pub reason: DoneReason,
    /// The failure that ended it, if one did.
    pub failure: Option<Failure>,
    /// The final report, if one was required.
    pub report: Option<Box<FinalReport>>,
}
