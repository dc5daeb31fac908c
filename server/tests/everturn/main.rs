//! The binary as users run it: real processes, sockets and terminals, against a scripted provider.
#![cfg(unix)]
#![cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "faults are injected on Linux only"))]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "a test fails by panicking, and may say why")]

mod approval;
mod asking;
mod branch;
#[cfg(target_os = "linux")]
mod burst;
mod callers;
mod chat;
mod client;
#[cfg(target_os = "linux")]
mod clock;
#[cfg(feature = "nats")]
mod cluster;
mod command;
mod compaction;
mod composing;
mod conversations;
#[cfg(target_os = "linux")]
mod disk;
mod echo;
mod events;
mod explain;
#[cfg(target_os = "linux")]
mod fault;
mod herd;
mod history;
mod home;
mod kept;
#[cfg(target_os = "linux")]
mod kill;
mod manual;
mod markdown;
mod orphan;
mod page;
mod pass;
mod permission;
mod pipe;
#[cfg(all(target_os = "linux", feature = "postgres"))]
mod postgres;
mod provider;
mod provider_tls;
mod proxy;
mod reasoning;
mod rejected;
mod relay;
mod request;
mod restart;
mod retention;
mod review;
mod route;
mod run;
mod serve;
mod settings;
mod shutdown;
#[cfg(target_os = "linux")]
mod soak;
mod targets;
mod terminal;
mod thinking;
mod titles;
mod tls;
mod turn_log;
mod typing;
mod with;
