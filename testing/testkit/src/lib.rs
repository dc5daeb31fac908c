//! A test environment for turns: fake time and sleep, scripted models and tools, crashes, invariants.
//!
//! A [`Script`] defines what the model, the tools and people do. A [`World`] plays it: it drives a real turn of
//! `everturn-kernel` with [`run_turn`](everturn_kernel::run_turn) on a [`Clock`] that advances only when every task
//! waits, so that a wait of eight hours takes no time. The [`Log`] records every fact. Its transcript has one line per
//! fact, suitable for snapshot tests. [`Invariants`] are the properties of every turn.
//!
//! ```
//! use everturn_testkit::{Script, World, beat};
//!
//! let answers = [beat::overloaded(), beat::overloaded(), beat::says("Hello")];
//! let mut world = World::new(Script::one_step(answers));
//! world.run().sealed().expect("it survives two failures");
//! world.check(); // panics with the transcript if an invariant is violated
//!
//! assert_eq!(world.log().sleeps(), [5_000, 10_000]); // the patient schedule, in milliseconds
//! assert!(world.transcript().contains(r#"15000 text-delta delta="Hello""#));
//! ```
//!
//! With the feature `proptest`, `strategy` generates failures, stream events, settings and whole scripts, for property
//! tests of your schedule, your settings or your own driver without a host of your own:
//!
#![cfg_attr(feature = "proptest", doc = "```")]
#![cfg_attr(not(feature = "proptest"), doc = "```ignore")]
//! use everturn_testkit::{World, strategy::any_script};
//! use proptest::{prelude::*, test_runner::TestRunner};
//!
//! TestRunner::deterministic().run(&(any_script(), 0..50u32), |(script, point)| {
//!     let mut world = World::new(script);
//!     world.crash_at(point); // the process ends at this point, and another continues from the last save
//!     world.run().sealed().expect("the turn ends");
//!     world.check();
//!     Ok(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! This crate does *not* use a runtime, real time or randomness of its own. It is for tests only, and panics on misuse.

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

pub use beat::Beat;
pub use clock::{Clock, START};
pub use fact::Fact;
pub use host::{Crashed, ScriptedHost};
pub use invariant::{Invariants, Violation};
pub use log::Log;
pub use run::Run;
pub use schedule::Delays;
pub use script::{Person, Script, Tool};
pub use sleep::{FakeSleep, Nap};
pub use world::{World, play};
