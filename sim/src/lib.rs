//! A deterministic world for tests: a scripted loopback provider.
//!
//! [`Loopback`] is a real HTTP/1.1 server on 127.0.0.1 that answers with [`Reply`]s: bytes, cuts, resets and stalls at
//! exact offsets, released by [`Gate`]s and never by timers.
//!
//! This crate does *not* know any other crate of the workspace, does not speak TLS or HTTP/2, and is never part of
//! the product: it is for tests, benchmarks and demos.

pub mod chat;
pub mod fault;
mod loopback;

pub use loopback::{ClosedPort, Counts, Gate, Loopback, Reply, Request};
