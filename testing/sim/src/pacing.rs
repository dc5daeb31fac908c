//! A world of providers, on virtual time: how well a policy uses what a provider allows, and how many calls it makes in
//! vain.
//!
//! A `vendor` models the limits of a provider, a [`Load`] who wants to call, and a `policy` decides when calls are made:
//! ours, those of others, and an oracle that knows the limits. [`run`] plays one against the other.

mod figures;
mod load;
mod ours;
mod policy;
mod rivals;
mod scenarios;
mod vendor;
mod world;

pub use figures::Figures;
pub use load::Load;
pub use policy::PolicyKind;
pub use scenarios::scenarios;
use vendor::Rule;
pub use vendor::Tells;
pub use world::{Scenario, run};
