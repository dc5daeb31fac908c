//! What an embedder may rely on, tested through the public API only.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod again;
mod approval;
mod attempts;
mod branch;
mod chains;
mod cluster;
mod command;
mod compaction;
mod deletion;
mod end_reason;
mod figures;
mod image;
mod inherit;
mod journal;
mod memory;
mod moving;
mod observer;
mod offer;
mod panic;
mod property;
mod queue;
mod report;
mod request;
mod retry;
mod retry_settings;
mod review;
mod rewind;
mod route;
mod shutdown;
mod storage;
mod subscription;
mod support;
mod thinking;
mod tool;
mod watching;
