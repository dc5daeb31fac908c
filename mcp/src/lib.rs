//! Tools of MCP servers, as sources of tools for the orchestrator.
//!
//! An [`McpServer`] starts a program (stdio) or connects to an address (streamable HTTP), keeps the connection, and offers
//! what the server lists. Everything that a server says is bounded in size and time, and none of it is believed: a call
//! is asked about unless its server is trusted by configuration.
//!
//! This crate does *not* decide whether a call may run (the orchestrator does) and offers nothing of MCP but tools: no
//! resources, prompts, sampling or elicitation.

mod answer;
mod backoff;
mod call;
mod catalog;
mod config;
mod connection;
mod ear;
mod http;
mod keeper;
mod link;
mod name;
mod process;
mod server;
mod tool;
mod veil;

pub use config::{Command, ConfigError, Connection, Endpoint, ServerConfig, Setting, Timeouts};
pub use server::McpServer;
