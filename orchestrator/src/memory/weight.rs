//! The approximate memory of what a provider yields, in bytes.

use everturn_kernel::{Arguments, ToolCall};
use everturn_ports::weight::{of_echo, of_value};

pub(super) fn of_call(call: &ToolCall) -> usize {
    let arguments = match &call.arguments {
        Arguments::Parsed(value) => of_value(value),
        Arguments::Malformed { raw, reason } => raw.len() + reason.len(),
    };
    call.id.len() + call.name.len() + arguments + call.echo.as_ref().map_or(0, of_echo)
}
