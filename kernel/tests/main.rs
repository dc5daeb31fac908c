//! The kernel from outside: what it does, what always holds, what a crash may cost, what it reads from disk.
//!
//! Nothing here needs a runtime or real time: `everturn-testkit` has a clock that moves when everyone waits.

mod crash;
mod golden;
mod preset;
mod property;
mod scenario;
