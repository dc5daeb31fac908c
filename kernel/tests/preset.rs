//! Presets on a route. Each case is a list of failures with the expected calls and waits.

mod cycling;
mod exponential;
mod handover;
mod interactive;
mod moves;
mod person;
pub(crate) mod random;
mod route_run;
mod walls;
