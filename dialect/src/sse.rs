//! Server-sent events, as all these clients read them: one line of data each, without names or ids.

use serde_json::Value;

/// Writes an event.
pub(crate) fn put(data: &Value, out: &mut Vec<u8>) {
    out.extend_from_slice(format!("data: {data}\n\n").as_bytes());
}

/// Writes the end, where a client expects a word for it.
pub(crate) fn done(out: &mut Vec<u8>) {
    out.extend_from_slice(b"data: [DONE]\n\n");
}

/// Writes a comment, which no client shows.
pub(crate) fn keep_alive(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}
