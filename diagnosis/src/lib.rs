//! What a provider's failure is: its category, whether it passes, and how long the provider asks to wait.
//!
//! Structure is believed before text: codes and fields of the body first, then known shapes of proxies,
//! then the status, and words last.
//!
//! Pure: no I/O, no clock (the caller says what time it is), no panic whatever the input, bounded output.
//! This crate does *not* decide what a turn does about a failure.

mod advice;
mod because;
mod case;
mod code;
mod diagnose;
mod evidence;
mod field;
mod hint;
mod kind;
mod measure;
mod message;
mod named;
mod pair;
mod phrase;
mod prose;
mod quota;
mod redaction;
mod shape;
mod status;
mod transport;

pub use diagnose::{Explanation, diagnose, explain};
pub use evidence::{Evidence, Stage, Transport};
pub use quota::RequestQuota;
pub use redaction::redact;
