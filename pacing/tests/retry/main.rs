//! Presets on a route. Each case is a list of failures with the expected calls and waits.

mod crash;
mod cycling;
mod exponential;
mod handover;
mod interactive;
mod limits;
mod moves;
mod person;
mod random;
mod route_run;
