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

use everturn_wire::{Category, Chunk, DoneReason, Echo, Failure, RetryPhase, RetryState, Usage};

use crate::{Millis, Op, call::OpenCall};

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
    pub(crate) tally: Tally,
    /// When this call was wanted.
    pub(crate) since: Millis,
    /// When its first token came. Set = content was seen.
    pub(crate) first_token_at: Option<Millis>,
    /// What it said so far, in order.
    pub(crate) pieces: Vec<Piece>,
    /// The tools it asked for so far.
    pub(crate) calls: Vec<OpenCall>,
    /// The last token counts it gave.
    pub(crate) usage: Option<Usage>,
    /// Watchers were told that it is silent.
    pub(crate) is_silent: bool,
}

impl Streaming {
    pub(crate) fn new(op: Op, tally: Tally, now: Millis) -> Self {
        Self {
            op,
            tally,
            since: now,
            first_token_at: None,
            pieces: Vec::new(),
            calls: Vec::new(),
            usage: None,
            is_silent: false,
        }
    }

    /// Whether this is a retry that has shown nothing yet.
    pub(crate) fn is_retry(&self) -> bool {
        self.tally.retries > 0 && self.first_token_at.is_none()
    }

    /// Whether the provider said anything that a client may have seen: then a retry would show it twice.
    pub(crate) fn has_content(&self) -> bool {
        self.first_token_at.is_some() || self.usage.is_some()
    }
}

/// A run of streamed text of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Text(String),
    /// Reasoning. With an echo it is complete, and may have no words.
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

    /// What is shown of it.
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
    pub(crate) tally: Tally,
    /// When the wait ends.
    pub(crate) resume_at: Millis,
    /// How long the wait was decided to be: a clock that was set back cannot make it longer.
    pub(crate) decided_ms: u64,
}

/// Waiting for tool results.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tools {
    pub(crate) step: u32,
    pub(crate) calls: Vec<OpenCall>,
}

/// What the retries of a step add up to so far. Starts anew with each step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Retries scheduled so far = the 0-based number of the next one.
    pub(crate) retries: u32,
    /// What their waits add up to.
    pub(crate) waited_ms: u64,
    /// The retry that was scheduled last, as it was told. Boxed: most calls have none.
    pub(crate) last: Option<Box<Scheduled>>,
}

/// A scheduled retry, kept for showing as long as the chain of retries goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scheduled {
    /// How long the wait was decided to be.
    pub(crate) delay_ms: u64,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) category: Category,
    pub(crate) message: String,
    pub(crate) code: Option<String>,
}

impl Tally {
    /// The chain of retries as others see it: waiting until `next_at`, or being asked.
    pub(crate) fn state(&self, next_at: Option<Millis>) -> RetryState {
        let last = self.last.as_deref();
        RetryState {
            phase: if next_at.is_some() { RetryPhase::Waiting } else { RetryPhase::Asking },
            attempt: self.retries.saturating_sub(1),
            delay_ms: last.map_or(0, |last| last.delay_ms),
            next_at: next_at.map(|at| at.0),
            max_attempts: last.and_then(|last| last.max_attempts),
            category: last.map(|last| last.category),
            message: last.map(|last| last.message.clone()),
            code: last.and_then(|last| last.code.clone()),
        }
    }
}

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Why.
    pub reason: DoneReason,
    /// The failure that ended it, when one did.
    pub failure: Option<Failure>,
}
