//! The reader of failures that people paste: what a response is, why, and what a turn would do about it.
//!
//! It does not diagnose or schedule: it asks `diagnosis` and the kernel. It reads no configuration.

mod args;
mod case;
mod forecast;
mod paste;
mod report;
mod row;
mod run;
mod verdict;

pub use args::{Explain, Stage, Transport};
pub use run::{Plan, run};
