//! Frames that keep a waiting client connected, in the form of its protocol.
//!
//! What each client tolerates was measured with the real programs: see `docs/passing-through.md`.

use bytes::Bytes;
use everturn_orchestrator::Dialect;
use serde_json::{Value, json};

/// Number of frames of the Messages API after which pings no longer hold every client, and an early start of the message
/// does: about four minutes.
const PINGS: u32 = 24;

const PING: &str = "event: ping\ndata: {\"type\": \"ping\"}\n\n";
const COMMENT: &str = ": everturn waits for the provider\n\n";

/// The frames of one wait.
#[derive(Debug)]
pub(super) struct Frames {
    dialect: Dialect,
    /// The call's id, for answers that need one before the provider gives its own.
    id: String,
    /// The model, as the client named it.
    model: String,
    sent: u32,
}

impl Frames {
    pub(super) fn new(dialect: Dialect, id: &str, model: &str) -> Self {
        Self { dialect, id: id.to_owned(), model: model.to_owned(), sent: 0 }
    }

    /// Returns the next frame.
    pub(super) fn next(&mut self) -> Bytes {
        self.sent = self.sent.saturating_add(1);
        match self.dialect {
            Dialect::Messages if self.sent <= PINGS => Bytes::from_static(PING.as_bytes()),
            Dialect::Messages if self.sent == PINGS + 1 => self.message_start(),
            Dialect::Messages => delta(&json!({ "output_tokens": 0 })),
            Dialect::Responses => self.in_progress(),
            // An empty object, as not every client skips comments.
            Dialect::Gemini => Bytes::from_static(b"data: {}\n\n"),
            _ => Bytes::from_static(COMMENT.as_bytes()),
        }
    }

    /// Whether a message was begun that the provider knows nothing of: its own beginning must be replaced.
    pub(super) fn has_begun_message(&self) -> bool {
        self.dialect == Dialect::Messages && self.sent > PINGS
    }

    fn message_start(&self) -> Bytes {
        let message = json!({
            "id": format!("msg_{}", self.id), "type": "message", "role": "assistant", "model": self.model,
            "content": [], "stop_reason": null, "stop_sequence": null,
            "usage": { "input_tokens": 0, "output_tokens": 0 },
        });
        event("message_start", &json!({ "type": "message_start", "message": message }))
    }

    /// The Responses API's own events of an answer that has not begun. The provider's follow, and replace its id.
    fn in_progress(&self) -> Bytes {
        let kind = if self.sent == 1 { "response.created" } else { "response.in_progress" };
        let number = self.sent - 1;
        event(
            kind,
            &json!({ "type": kind, "sequence_number": number, "response": self.response("in_progress", &Value::Null) }),
        )
    }

    fn response(&self, status: &str, error: &Value) -> Value {
        json!({
            "id": format!("resp_{}", self.id), "object": "response", "created_at": 0, "status": status,
            "model": self.model, "output": [], "error": error, "incomplete_details": null, "instructions": null,
            "metadata": {}, "parallel_tool_calls": true, "temperature": null, "tool_choice": "auto", "tools": [],
            "top_p": null, "usage": null,
        })
    }

    /// Returns the event for a refusal that came after frames were sent. `body` is the refusal's own.
    pub(super) fn refusal(&self, status: u16, body: &[u8]) -> Bytes {
        let text = String::from_utf8_lossy(body);
        let said: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        let error = &said["error"];
        let message = || error["message"].as_str().map_or_else(|| shown(status, &text), str::to_owned);
        let own = |dialect, message: &str| {
            super::error::body(dialect, hyper::StatusCode::from_u16(status).unwrap_or_default(), message)
        };
        match self.dialect {
            Dialect::Responses => {
                let code = error["code"].as_str().or(error["type"].as_str()).unwrap_or(match status {
                    400..=499 if status != 429 => "invalid_prompt",
                    429 => "rate_limit_exceeded",
                    _ => "server_error",
                });
                let response = self.response("failed", &json!({ "code": code, "message": message() }));
                event(
                    "response.failed",
                    &json!({ "type": "response.failed", "sequence_number": self.sent, "response": response }),
                )
            }
            // The provider's own words, as they came.
            Dialect::Messages if error.is_object() && said["type"] == "error" => {
                lines("event: error\n", &text)
            }
            Dialect::Messages => event("error", &own(Dialect::Messages, &message())),
            _ if error.is_object() => lines("", &text),
            dialect => Bytes::from(format!("data: {}\n\n", own(dialect, &shown(status, &text)))),
        }
    }
}

/// Returns an empty change of a message, with these token counts.
pub(super) fn delta(usage: &Value) -> Bytes {
    let nothing = json!({ "stop_reason": null, "stop_sequence": null });
    event("message_delta", &json!({ "type": "message_delta", "delta": nothing, "usage": usage }))
}

fn event(name: &str, data: &Value) -> Bytes {
    Bytes::from(format!("event: {name}\ndata: {data}\n\n"))
}

/// Returns an event with this JSON text, whose line breaks are only white space.
fn lines(head: &str, json: &str) -> Bytes {
    let mut event = head.to_owned();
    for line in json.lines() {
        event.push_str("data: ");
        event.push_str(line);
        event.push('\n');
    }
    event.push('\n');
    event.into()
}

/// Returns what a refusal says that is not in the form of its API.
fn shown(status: u16, text: &str) -> String {
    let text: String = text.trim().chars().take(500).collect();
    if text.is_empty() { format!("HTTP {status}") } else { format!("HTTP {status}: {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(dialect: Dialect) -> Frames {
        Frames::new(dialect, "call-1", "m")
    }

    fn text(bytes: &Bytes) -> &str {
        std::str::from_utf8(bytes).unwrap()
    }

    #[test]
    fn pings_hold_for_four_minutes_and_then_a_begun_message() {
        let mut frames = frames(Dialect::Messages);
        for _ in 0..24 {
            assert_eq!(frames.next(), PING);
            assert!(!frames.has_begun_message());
        }
        assert!(text(&frames.next()).starts_with("event: message_start\ndata: {"));
        assert!(frames.has_begun_message());
        let delta = frames.next();
        assert!(text(&delta).contains(r#""stop_reason":null"#), "{delta:?}");
    }

    #[test]
    fn a_response_is_created_once() {
        let mut frames = frames(Dialect::Responses);
        assert!(text(&frames.next()).starts_with("event: response.created\n"));
        assert!(text(&frames.next()).starts_with("event: response.in_progress\n"));
        assert!(text(&frames.next()).contains(r#""sequence_number":2"#));
    }

    #[test]
    fn a_refusal_keeps_the_providers_words() {
        let body = "{\"type\":\"error\",\n \"error\":{\"type\":\"a\",\"message\":\"b\"}}";
        let told = frames(Dialect::Messages).refusal(400, body.as_bytes());
        assert_eq!(
            text(&told),
            "event: error\ndata: {\"type\":\"error\",\ndata:  \"error\":{\"type\":\"a\",\"message\":\"b\"}}\n\n"
        );
        let told = frames(Dialect::Messages).refusal(503, b"<html>");
        assert!(
            text(&told).contains(r#""message":"HTTP 503: <html>""#)
                && text(&told).contains("overloaded_error")
        );
        let told = frames(Dialect::Responses)
            .refusal(400, br#"{"error":{"code":"context_length_exceeded","message":"b"}}"#);
        assert!(text(&told).contains(r#""code":"context_length_exceeded""#), "{told:?}");
        let told = frames(Dialect::Chat).refusal(401, br#"{"error":{"message":"no"}}"#);
        assert_eq!(text(&told), "data: {\"error\":{\"message\":\"no\"}}\n\n");
    }
}
