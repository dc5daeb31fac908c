//! Strategies for `proptest`: what may happen to a turn, likely or not, valid or not.
//!
//! Most property tests need only [`any_script`]. The others are its parts, for your own scripts. Each is an ordinary
//! strategy that can be mapped and combined.
//!
//! ```
//! use everturn_kernel::{Budget, Settings};
//! use everturn_testkit::{Script, World, beat, strategy::{any_failure, any_script}};
//! use proptest::{prelude::*, test_runner::TestRunner};
//!
//! // The same failure for ever, under a budget of one hour.
//! let budget = Budget { max_wait_ms: Some(3_600_000), ..Budget::default() };
//! let scripts = any_failure().prop_map(move |failure| Script {
//!     settings: Settings { budget, ..Settings::default() },
//!     ..Script::one_step([vec![beat::failed(failure)]])
//! });
//! TestRunner::deterministic().run(&scripts, |script| {
//!     let mut world = World::new(script);
//!     world.run().sealed().expect("the turn gives up");
//!     world.check();
//!     prop_assert!(world.log().sleeps().iter().sum::<u64>() <= 3_600_000);
//!     Ok(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod config;
mod input;
mod script;
mod settings;
mod stream;

pub use config::config;
pub use input::{any_input, any_outside};
pub use script::{any_attempt, any_calm_script, any_nap, any_script};
pub use settings::{any_budget, any_delays, any_moment, any_settings, any_targets};
pub use stream::{
    any_call_id, any_check, any_echo, any_event, any_failure, any_finish_reason, any_hold, any_limits,
    any_op, any_progress, any_review_answer, any_summary, any_tool_answer, any_tool_call, any_usage,
};
