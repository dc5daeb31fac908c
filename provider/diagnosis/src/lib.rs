//! Diagnoses provider failures: category, whether it is temporary, and the wait that the provider asked for.
//!
//! Structure is believed before text: first codes and fields of the body, then known shapes of proxies, then the
//! status, and finally words.
//!
//! Pure: no I/O, no clock (the caller passes the time), no panics, and bounded output, whatever the input. This crate
//! does *not* decide how a turn reacts to a failure.

mod advice;
mod because;
mod case;
mod code;
mod diagnose;
mod evidence;
mod field;
mod hint;
mod image;
mod kind;
mod measure;
mod message;
mod named;
mod pair;
mod phrase;
mod prose;
mod redaction;
mod shape;
mod status;
mod transport;

pub use diagnose::{Explanation, diagnose, explain};
pub use evidence::{Evidence, Stage, Transport};
pub use hint::from_now;
pub use redaction::redact;
