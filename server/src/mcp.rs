//! MCP servers, whose tools models can call.

#[cfg(feature = "mcp")]
mod command;
#[cfg(feature = "mcp")]
mod logins;
#[cfg(not(feature = "mcp"))]
mod refusing;
#[cfg(feature = "mcp")]
mod servers;

#[cfg(feature = "mcp")]
pub(crate) use command::run;
#[cfg(feature = "mcp")]
pub(crate) use logins::{is_open, routes};
#[cfg(not(feature = "mcp"))]
pub(crate) use refusing::{McpServers, is_open, routes, run};
#[cfg(feature = "mcp")]
pub(crate) use servers::McpServers;
