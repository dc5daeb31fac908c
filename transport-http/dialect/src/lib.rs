//! Translates other protocols: requests become commands that start turns, and events become the client's frames.
//!
//! This crate does *not* do I/O, spawn, read a clock, start turns or make decisions about them. The transport passes in
//! what arrives and sends what comes out.

pub mod ag_ui;
pub mod ai_sdk;
mod asked;
mod conversation;
mod event;
mod failure;
mod few;
mod lenient;
pub mod openai;
mod sse;
mod translator;

pub use asked::{Asked, call_key};
pub use conversation::conversation_of;
pub use event::Event;
pub use translator::Translator;
