//! What the presets do on a route: each case is a list of failures, and the calls and waits that must come of it.

mod cycling;
mod handover;
mod interactive;
mod person;
pub(crate) mod random;
mod story;
mod walls;
