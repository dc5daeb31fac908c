//! Explains pasted failures: the diagnosis, its reasons, and what a turn would do.
//!
//! Relies on `diagnosis` and the kernel for both. Does not read the configuration.

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
