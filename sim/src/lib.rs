//! A deterministic world for tests: a scripted loopback provider, a virtual clock, and what every journal must do.
//!
//! [`Loopback`] is a real HTTP/1.1 server on 127.0.0.1 that answers with [`Reply`]s: bytes, cuts, resets and stalls at
//! exact offsets, released by [`Gate`]s and never by timers.
//!
//! [`VirtualClock`] moves only when it is told to, or when nothing else is left to do; it needs no runtime.
//!
//! [`WallClock`] shows a runtime's time, and can be set while others wait by it.
//!
//! [`crash::run`] lets the orchestrator crash in a seeded world, and checks what is left.
//!
//! [`journal::conformance`] is the one body of tests that every journal passes, whatever it is made of.
//!
//! [`herd`] has many turns outlive their process on one target, whatever their store.
//!
//! This crate does *not* speak TLS or HTTP/2, and is never part of the product: it is for tests, benchmarks and demos.

pub mod chat;
mod clock;
pub mod crash;
pub mod fault;
pub mod herd;
pub mod journal;
mod loopback;
mod wall;

pub use clock::{Sleep, VirtualClock};
pub use loopback::{ClosedPort, Counts, Gate, Loopback, Reply, Request};
pub use wall::WallClock;
