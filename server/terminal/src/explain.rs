//! Explains pasted failures: the diagnosis, its reasons, and what a turn would do.
//!
//! It leaves the diagnosis to `everturn-diagnosis` and the schedule to the kernel, and reads no configuration.

mod args;
mod case;
mod forecast;
mod paste;
mod plan;
mod report;
mod row;
mod run;
mod verdict;

pub use args::{Explain, Stage, Transport};
pub use plan::Plan;
pub use run::run;
