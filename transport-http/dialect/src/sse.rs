//! Server-sent events in the form that all these clients read: one line of data each, without names or ids.

use serde_json::Value;

/// Writes an event.
pub(crate) fn put(data: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

/// Writes the terminator that some clients expect.
pub(crate) fn done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: [DONE]\n\n");
}

/// Writes a comment, which clients ignore.
pub(crate) fn keep_alive(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}
