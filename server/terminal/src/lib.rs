//! The terminal client: interactive conversations, single turns for scripts, and queries of a server or its file.
//!
//! It does not run turns: it talks to a server over WebSocket and HTTP. Only `conversations` opens a server's file
//! itself.

mod args;
mod calendar;
mod chat;
mod conversations;
mod decision;
mod failure_summary;
mod health;
mod remote;
mod running;
mod targets;
mod tools;

pub use args::{Approvals, Chat, Conversations, Running};
pub use chat::{Host, Kept, Private, Resume, run as chat, run_once};
pub use conversations::{Shared, Source, run as conversations};
pub use health::run as health;
pub use targets::run as targets;
pub use tools::{run as tools, state as source_state};
