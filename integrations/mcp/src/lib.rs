//! MCP servers as tool sources for the orchestrator.
//!
//! An [`McpServer`] starts a program (stdio) or connects to a URL (streamable HTTP), maintains the connection, and
//! offers the tools that the server lists. Everything that a server sends is bounded in size and time, and none of it
//! is trusted: calls need approval unless the configuration trusts the server.
//!
//! This crate does *not* decide whether a call may run (the orchestrator does), and supports only the tools of MCP and their
//! questions to people (elicitation): no resources, prompts or sampling. At servers that ask for it, people log in ([`Login`]); their tokens are
//! replaced when they expire.

#[cfg(feature = "client")]
mod account;
#[cfg(feature = "client")]
mod answer;
#[cfg(feature = "client")]
mod backoff;
#[cfg(feature = "client")]
mod call;
#[cfg(feature = "client")]
mod caller;
#[cfg(feature = "client")]
mod catalog;
mod config;
#[cfg(feature = "client")]
mod connection;
#[cfg(feature = "client")]
mod elicitation;
#[cfg(feature = "client")]
mod handler;
#[cfg(feature = "client")]
mod http;
#[cfg(feature = "client")]
mod link;
#[cfg(feature = "client")]
mod login;
mod login_store;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "a client uses the rest"))]
mod name;
#[cfg(feature = "client")]
mod notification;
#[cfg(feature = "client")]
mod process;
#[cfg(feature = "client")]
mod redactor;
#[cfg(feature = "client")]
mod request;
#[cfg(feature = "client")]
mod server;
#[cfg(feature = "client")]
mod supervisor;
#[cfg(feature = "client")]
mod tool;
#[cfg_attr(not(feature = "client"), allow(dead_code, reason = "a client uses the rest"))]
mod watchdog;

pub use config::{Command, ConfigError, Connection, Endpoint, Oauth, ServerConfig, Setting, Timeouts};
#[cfg(feature = "client")]
pub use login::{Login, LoginError, log_out};
pub use login_store::{LoginStore, MemoryLogins};
#[cfg(feature = "client")]
pub use server::McpServer;
pub use watchdog::{Watchdog, WatchedProcess, watch_over};
