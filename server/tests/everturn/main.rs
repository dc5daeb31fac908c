//! The binary as its users meet it: real processes, sockets and terminals, against a scripted provider.
#![cfg(unix)]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and may say why")]

mod chat;
mod client;
mod echo;
mod home;
mod page;
mod pipe;
mod proxy;
mod reasoning;
mod relay;
mod restart;
mod serve;
mod shutdown;
mod terminal;
mod thinking;
