//! The terminal client: interactive conversations, single turns for scripts, queries of a server or its file, and
//! explanations of pasted failures.
//!
//! It does not run turns: it talks to a server over WebSocket and HTTP. Only `conversations` opens a server's file
//! itself. It reads no configuration.

mod args;
mod calendar;
mod calls;
mod chat;
mod conversations;
mod decision;
mod explain;
mod failure_summary;
mod health;
mod hidden;
mod interrupt;
mod nearest;
pub mod printer;
mod remote;
mod running;
mod secret;
mod targets;
mod tools;
mod usage;
pub mod visible;
pub mod wording;

pub use args::{Approvals, Calls, Chat, Conversations, Running, Usage};
pub use calls::{Listed, Servers, line as status_line, run as calls};
pub use chat::{Host, Kept, Private, Resume, run as chat, run_once};
pub use conversations::{Shared, Source, run as conversations};
pub use explain::{Explain, Plan, Stage, Transport, run as explain};
pub use health::run as health;
pub use hidden::Hidden;
pub use interrupt::Interrupt;
pub use nearest::nearest;
pub use secret::ask_secret;
pub use targets::run as targets;
pub use tools::{run as tools, state as source_state};
pub use usage::run as usage;
