//! One agent turn as a value: a state machine without I/O, clock, randomness or runtime.
#![no_std]

extern crate alloc;

mod op;
mod provider;

pub use op::Op;
pub use provider::{Arguments, FinishReason, Provider, Request, StreamEvent, ToolCall, ToolSpec};
