//! What an embedder may rely on, tested through the public API only.

mod command;
mod journal;
mod retry;
mod support;
mod tool;
