//! The journal on real NATS servers. Without the program `nats-server`, every test prints why it is skipped.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "some tests print figures")]

mod cluster;
mod conformance;
mod index;
mod large;
mod long;
mod lost;
mod name;
mod ports;
mod refuse;
mod remove;
mod rename;
mod speed;
mod support;
