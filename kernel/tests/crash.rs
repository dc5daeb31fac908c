//! The process ends, at any point, and another goes on: it must come out as if nothing had happened.

mod every_point;
mod recovery;
mod route;
mod wait;
