//! The exact JSON of everything on the wire, and the documents that describe it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod document;
mod json;
mod newer;
mod sample;
mod schema;
