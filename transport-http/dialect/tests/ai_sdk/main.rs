//! AI SDK: requests as sent by `useChat`, and answers as read by its strict parser.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod frame;
mod property;
mod reader;
mod request;
mod transcript;

#[path = "../common/any_event.rs"]
mod any_event;
#[path = "../common/events.rs"]
mod events;

use everturn_dialect::{
    Event, Translator as _,
    ai_sdk::{Chunks, Version},
};
use everturn_wire::EventBody;

use events::events;

const VERSIONS: [Version; 3] = [Version::Five, Version::Six, Version::Seven];

/// Returns the stream for a turn from its start.
fn streamed(events: &[EventBody], version: Version) -> String {
    let mut out = Vec::new();
    let mut chunks = Chunks::new(version, &"c".into(), &"t".into(), &mut out);
    for event in events {
        chunks.push(&Event::Other(event), &mut out);
    }
    String::from_utf8(out).unwrap()
}
