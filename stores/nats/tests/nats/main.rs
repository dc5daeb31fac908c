//! The journal on real NATS servers. Without the program `nats-server`, every test prints why it is skipped.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "some tests print figures")]

mod base;
mod clock;
mod cluster;
mod conformance;
mod disk;
mod history;
mod index;
mod jwt;
mod large;
mod login;
mod long;
mod lost;
mod name;
mod newer;
mod partition;
mod ports;
mod refuse;
mod relay;
mod remove;
mod rename;
mod retention;
mod rivals;
mod settled;
mod single;
mod speed;
mod support;
