//! One agent turn as a value: a state machine without I/O, clock, randomness or runtime.
//!
//! A [`Turn`] takes inputs ([`Turn::handle`]), returns effects (each emitted once) and says what it needs next
//! ([`Turn::want`], a pure function of its state). Because it is a value, it can be saved during a wait and continue in
//! another process. [`run_turn`] drives it in the right order; [`Host`] is what that driver needs from outside.
//!
//! This crate does *not* sleep, read a clock, spawn, log or call a provider. No input makes it panic: an input that
//! does not apply changes nothing.
//!
//! To test code built on this crate, with a fake sleep, use `everturn-testkit`.
//!
//! Start with `phase.rs`, the states. Then read `turn.rs`, the transitions, with one file per phase.
#![no_std]

extern crate alloc;

mod call;
mod check;
mod compaction;
mod directive;
mod driver;
mod effect;
mod health;
mod hint;
mod input;
mod jitter;
mod ledger;
mod limit;
mod millis;
mod op;
mod phase;
mod provider;
mod report;
mod retry;
mod review;
mod route;
mod settings;
mod snapshot;
pub mod span;
mod tool_call;
mod turn;
mod wait;
mod want;

pub use check::{Answer, Approval, Check, Checked, CheckedCall};
pub use compaction::Summary;
pub use directive::{Ask, Directive, GiveUp, NextCall, Question};
pub use driver::{Ended, Host, run_turn};
pub use effect::{Effect, Effects};
pub use health::{
    Health, Mark, SHORTEST_MARK_MS, USUAL_MARK_MS, is_of_request, is_of_target, is_refusal, passes,
};
pub use input::{Input, ToolAnswer};
pub use jitter::Jitter;
pub use ledger::{Ledger, Seen};
pub use limit::{Limits, Told, What};
pub use millis::{Millis, wait_ms};
pub use op::Op;
pub use phase::Outcome;
pub use provider::{FinishReason, Hold, Provider, ProviderInfo, Request, Silence, StreamEvent, ToolSpec};
pub use report::{FINAL_REPORT, ReportRule};
pub use retry::{NoRetry, Retry, RetryStrategy, Schedule, decide_alone};
pub use review::{Assessment, ReviewAnswer, ReviewAttempt, ReviewerSwitch};
pub use route::Target;
pub use settings::{AfterContent, Budget, Compaction, Settings};
pub use snapshot::{RestoreError, Snapshot};
pub use tool_call::{Arguments, ToolCall};
pub use turn::{Prompt, Turn};
pub use wait::{Moment, Wait};
pub use want::Want;
