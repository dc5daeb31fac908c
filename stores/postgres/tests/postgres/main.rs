//! The journal on real Postgres servers. Without Postgres, every test prints why it is skipped.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "some tests print figures")]

mod conformance;
mod failover;
mod full;
mod lock;
mod lost;
mod migrate;
mod open;
mod pooler;
mod restart;
mod retention;
mod rival;
mod speed;
mod state;
mod support;
mod tls;
