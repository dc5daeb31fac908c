//! The process ends at any point and another continues. The outcome must be as if nothing had happened.

mod every_point;
mod recovery;
mod wait;
