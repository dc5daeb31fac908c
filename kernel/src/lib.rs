//! One agent turn as a value: a state machine without I/O, clock, randomness or runtime.
//!
//! A [`Turn`] is told facts ([`Turn::handle`]), answers with effects (told once) and says what it wants next
//! ([`Turn::want`], a pure function of its state). Because it is a value it can be saved while it waits and go on in
//! another process. [`run_turn`] is the order in which to do that; [`Host`] is what it needs from outside.
//!
//! This crate does *not* sleep, read a clock, spawn, log, or talk to a provider. It never panics on an input:
//! what does not apply changes nothing.
//!
//! To test what you build on it, with a fake sleep, see the crate `everturn-testkit`.
//!
//! Read `phase.rs` first: the states. Then `turn.rs`: the transitions, one file for each phase that is left.
#![no_std]

extern crate alloc;

mod call;
mod driver;
mod effect;
mod input;
mod millis;
mod op;
mod phase;
mod provider;
mod retry;
mod settings;
mod snapshot;
mod turn;
mod wait;
mod want;

pub use driver::{Ended, Host, run_turn};
pub use effect::{Effect, Effects};
pub use input::{Input, ToolAnswer};
pub use millis::Millis;
pub use op::Op;
pub use phase::Outcome;
pub use provider::{Arguments, FinishReason, Provider, Request, Silence, StreamEvent, ToolCall, ToolSpec};
pub use retry::{NoRetry, Retry, RetryStrategy, Schedule};
pub use settings::{Budget, Settings};
pub use snapshot::{RestoreError, Snapshot};
pub use turn::{Prompt, Turn};
pub use wait::{Moment, Wait};
pub use want::Want;
