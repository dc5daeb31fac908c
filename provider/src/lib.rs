//! Adapters from model APIs to the kernel's provider contract.

mod sse;

pub use sse::{EventTooLarge, SseDecoder, SseEvent};
