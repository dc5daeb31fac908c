//! A deterministic environment for tests: a scripted loopback provider, a virtual clock, and conformance tests for
//! journals.
//!
//! [`Loopback`] is a real HTTP server on 127.0.0.1 that answers with [`Reply`]s: bytes, truncations, resets and
//! stalls at exact offsets, controlled by [`Gate`]s and never by timers. With TLS, it also speaks HTTP/2, frame by frame.
//!
//! [`VirtualClock`] advances only by command, or when nothing else is left to do; it needs no runtime.
//!
//! [`WallClock`] shows a runtime's time, and can be set while others wait.
//!
//! [`crash::run`] crashes the orchestrator in a seeded world, and checks the result.
//!
//! [`journal::conformance`] is the conformance test that every journal passes.
//!
//! [`history`] checks what clients saw against the log.
//!
//! [`linear`] has rivals use a journal, and checks whether its answers are linearizable.
//!
//! [`cluster`] is a journal that several nodes share, and the conformance tests of the ports between nodes.
//!
//! [`nats`] runs real NATS servers that can be frozen and killed, and `postgres` does so for Postgres. [`relay`] loses what
//! is sent to and by them.
//!
//! [`numbered`] makes appends whose order can be checked, and [`speed`] measures them.
//!
//! [`herd`] tests many turns on one target across restarts, with any store.
//!
//! This crate is never part of the product: it is for tests, benchmarks and demos.

mod authority;
#[cfg(unix)]
pub mod bouncer;
mod certificate;
pub mod chat;
mod clock;
pub mod cluster;
pub mod crash;
pub mod fault;
pub mod herd;
pub mod history;
pub mod journal;
pub mod linear;
mod loopback;
pub mod nats;
pub mod numbered;
pub mod pacing;
#[cfg(unix)]
pub mod postgres;
pub mod relay;
pub mod speed;
mod wall;

pub use authority::{Authority, Identity};
pub use certificate::SelfSigned;
pub use clock::{Sleep, VirtualClock};
pub use loopback::{ClosedPort, Counts, Gate, Handshake, Loopback, Reply, Request, Tls};
pub use wall::WallClock;
