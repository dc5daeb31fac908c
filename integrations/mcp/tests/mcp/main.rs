//! Real MCP servers called by turns: `server-everything` in Node, and one in Python.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod death;
mod elicitation;
mod http;
mod list;
mod login;
mod restart;
mod stdio;
mod support;
mod time;
