//! The journal on a real disk: it keeps what it acknowledged, whatever happens to its process.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod archive;
mod close;
mod conformance;
mod crash;
mod full;
mod herd;
mod large;
mod newer;
mod older;
mod open;
mod retention;
mod rival;
mod running;
mod support;
mod torn;
mod versions;
