//! Schedules: how long to wait before each retry. Pure.

mod exponential;
mod patient;
mod timed;

pub use exponential::Exponential;
pub use patient::Patient;
pub(crate) use timed::TimedRetry;
