//! Tests of the kernel's public interface: scenarios, properties, crashes and saved formats.
//!
//! Nothing here needs a runtime or real time: the clock of `everturn-testkit` advances when every task waits.

mod crash;
mod golden;
mod property;
mod scenario;
