//! Tool calls.

use alloc::string::String;

use everturn_wire::{Echo, Value};

/// A tool call by the model.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolCall {
    /// The provider's id of the call, unique within its step.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// Opaque provider data that must be sent back with it.
    pub echo: Option<Echo>,
}

/// The arguments of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Arguments {
    /// The arguments parsed as JSON.
    Parsed(Value),
    /// The arguments did not parse. The tool is not run, and the model receives the reason.
    Malformed {
        /// The text received.
        raw: String,
        /// The parse error.
        reason: String,
    },
}
