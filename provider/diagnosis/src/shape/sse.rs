//! Raw event-stream text. Each event's payload is read like a body.

use super::{Findings, json};

pub(super) fn read(body: &str, found: &mut Findings) {
    let mut payload = String::new();
    for line in body.lines().chain([""]) {
        if let Some(data) = line.strip_prefix("data:") {
            payload.push_str(data);
            payload.push('\n');
        } else if let Some(event) = line.strip_prefix("event:") {
            found.is_error |= event.trim() == "error";
        } else if line.is_empty() {
            event(payload.trim(), found);
            payload.clear();
        }
    }
}

/// Ignores the end marker and comments that a gateway wrapped as data.
fn event(payload: &str, found: &mut Findings) {
    if !payload.starts_with(':') && payload != "[DONE]" {
        json::read_text(payload, 0, found);
    }
}
