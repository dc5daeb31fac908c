//! MCP servers as tool sources for the orchestrator.
//!
//! An [`McpServer`] starts a program (stdio) or connects to a URL (streamable HTTP), maintains the connection, and
//! offers the tools that the server lists. Everything that a server sends is bounded in size and time, and none of it
//! is trusted: calls need approval unless the configuration trusts the server.
//!
//! This crate does *not* decide whether a call may run (the orchestrator does), and supports only the tools of MCP and their
//! questions to people (elicitation): no resources, prompts or sampling. At servers that ask for it, people log in ([`Login`]); their tokens are
//! replaced when they expire.

mod account;
mod answer;
mod backoff;
mod call;
mod caller;
mod catalog;
mod config;
mod connection;
mod elicitation;
mod handler;
mod http;
mod link;
mod login;
mod login_store;
mod name;
mod notification;
mod process;
mod redactor;
mod request;
mod server;
mod supervisor;
mod tool;
mod watchdog;

pub use config::{Command, ConfigError, Connection, Endpoint, Oauth, ServerConfig, Setting, Timeouts};
pub use login::{Login, LoginError, log_out};
pub use login_store::{LoginStore, MemoryLogins};
pub use server::McpServer;
pub use watchdog::{Watchdog, WatchedProcess, watch_over};
