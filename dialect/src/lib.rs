//! Other people's protocols over our turns: a request becomes what a turn is started with, events become a client's frames.
//!
//! This crate does *not* do I/O, spawn, read a clock, start turns or decide anything about them: whoever has the
//! connection passes in what arrives and sends what comes out.

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
