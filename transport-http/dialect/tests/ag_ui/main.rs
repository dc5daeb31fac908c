//! AG-UI: requests as sent by `HttpAgent`, and runs as read by its strict parser.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod envelope;
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
    ag_ui::{Head, Kept, Run},
};
use everturn_wire::EventBody;

use events::events;

/// Returns the head of a run for a client of version 1.x or 0.0.x.
fn head(is_one: bool) -> Head {
    Head { thread_id: "th".into(), run_id: "r".into(), protocol: is_one.then(|| "1.0".into()) }
}

/// Returns the stream for a turn from its start, for a client with these messages.
fn streamed(events: &[EventBody], is_one: bool, had: &str) -> String {
    let mut out = Vec::new();
    let mut run = Run::new(head(is_one), &"t".into(), Kept::of(had), &mut out);
    for event in events {
        run.push(&Event::Other(event), &mut out);
    }
    String::from_utf8(out).unwrap()
}
