//! A model of how nodes share a conversation, small enough to visit every state that it can reach.
//!
//! Three nodes, a log and two turns; processes end, freeze and are taken for dead; appends, commands, replies and live events
//! are lost, late and repeated. The turns are the kernel's own ([`turns`]), the decisions between nodes are compiled from
//! `orchestrator/src/cluster/rules.rs`, and the rest follows the code named in [`model`]. Every rule of the protocol can be
//! broken ([`Rule`]), which the checker must notice. `notes/proof.md` has the results, and what the model leaves out.
//!
//! It does not model streamed text, reviews, deletion, shutdown, or the memory of a node that is full.

mod check;
mod command;
pub mod explore;
pub mod model;
mod node;
mod possible;
mod rule;
#[allow(dead_code, unreachable_pub, reason = "shared with the orchestrator, by path")]
#[path = "../../../orchestrator/src/cluster/rules.rs"]
mod rules;
mod session;
mod setting;
mod step;
mod system;
pub mod turns;
pub mod world;

pub use explore::{Explored, System, explore};
pub use model::Model;
pub use rule::Rule;
pub use setting::Setting;
pub use step::Step;
