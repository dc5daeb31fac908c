//! A world in which turns are tested: fake time and sleep, scripted models and tools, crashes, invariants.
//!
//! A [`Script`] says what the model, the tools and people do. A [`World`] plays it: it drives a real turn of
//! `everturn-kernel` with [`run_turn`](everturn_kernel::run_turn) on a [`Clock`] whose time moves only when everyone
//! waits, so a wait of eight hours takes no time. The [`Log`] has every fact that happened; its transcript has one line
//! for each, ready for a snapshot test. [`Invariants`] is what must hold in every turn.
//!
//! ```
//! use everturn_testkit::{Script, World, beat};
//!
//! let answers = [beat::overloaded(), beat::overloaded(), beat::says("Hello")];
//! let mut world = World::new(Script::one_step(answers));
//! world.run().sealed().expect("it survives two failures");
//! world.check(); // panics, with the transcript, where an invariant is broken
//!
//! assert_eq!(world.log().sleeps(), [5_000, 10_000]); // the patient schedule, in milliseconds
//! assert!(world.transcript().contains(r#"15000 text-delta delta="Hello""#));
//! ```
//!
//! With the feature `proptest`, `strategy` draws failures, stream events, settings and whole scripts, so that a property
//! test of your schedule, your settings or your own way to drive a turn needs no host of its own:
//!
#![cfg_attr(feature = "proptest", doc = "```")]
#![cfg_attr(not(feature = "proptest"), doc = "```ignore")]
//! use everturn_testkit::{World, strategy::any_script};
//! use proptest::{prelude::*, test_runner::TestRunner};
//!
//! TestRunner::deterministic().run(&(any_script(), 0..50u32), |(script, point)| {
//!     let mut world = World::new(script);
//!     world.crash_at(point); // the process ends there, and another one goes on with what was saved
//!     world.run().sealed().expect("it ends");
//!     world.check();
//!     Ok(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does *not* use a runtime, real time or randomness of its own, and is not for use outside of tests: where
//! something cannot go on it panics.

pub mod beat;
mod clock;
mod crash;
mod fact;
mod host;
mod invariant;
mod log;
mod run;
mod schedule;
mod script;
mod sleep;
#[cfg(feature = "proptest")]
pub mod strategy;
mod world;

pub use clock::Clock;
pub use fact::Fact;
pub use host::{Crashed, ScriptedHost};
pub use invariant::{Invariants, Violation};
pub use log::Log;
pub use run::Run;
pub use schedule::Delays;
pub use script::{Beat, Person, Script, Tool};
pub use sleep::{FakeSleep, Nap};
pub use world::{START, World, play};
