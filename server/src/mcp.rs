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
#[cfg(not(feature = "mcp"))]
pub(crate) use refusing::{McpServers, run};
#[cfg(feature = "mcp")]
pub(crate) use servers::McpServers;
