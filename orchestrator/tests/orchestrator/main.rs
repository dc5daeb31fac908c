//! What an embedder may rely on, tested through the public API only.

mod command;
mod journal;
mod panic;
mod property;
mod queue;
mod retry;
mod storage;
mod subscription;
mod support;
mod tool;
