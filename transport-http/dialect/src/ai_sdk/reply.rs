//! Frames sent to clients over a WebSocket.

use serde_json::json;

/// The answer to one request, as frames of `WebSocketChatTransport`.
#[derive(Debug)]
pub struct Reply {
    /// The beginning of every chunk frame.
    head: String,
    id: String,
    /// The number of the next chunk.
    sequence: u64,
}

impl Reply {
    /// Creates the answer to the request with this id.
    pub fn new(request_id: &str) -> Self {
        let id = json!(request_id);
        let head = format!(r#"{{"type":"chunk","requestId":{id},"sequence":"#);
        Self { head, id: request_id.to_owned(), sequence: 0 }
    }

    /// Returns the first frame.
    pub fn start(&self) -> String {
        self.frame("start")
    }

    /// Returns the frame that reports that no turn is running.
    pub fn no_active(&self) -> String {
        self.frame("no-active")
    }

    /// Returns the frame that rejects the request.
    pub fn error(&self, why: &str) -> String {
        json!({ "type": "error", "requestId": self.id, "errorText": why }).to_string()
    }

    /// Removes the next chunk from `stream`, which consists of complete chunks, and returns its frame. Skips comments.
    /// Returns `None` if nothing is left.
    pub fn next(&mut self, stream: &mut &str) -> Option<ReplyFrame> {
        while let Some((event, rest)) = stream.split_once("\n\n") {
            *stream = rest;
            let Some(data) = event.strip_prefix("data: ") else { continue };
            if data == "[DONE]" {
                return Some(ReplyFrame { text: self.frame("end"), is_last: true });
            }
            // The chunk is already JSON, so it is embedded unchanged.
            let text = format!(r#"{}{},"chunk":{data}}}"#, self.head, self.sequence);
            self.sequence += 1;
            return Some(ReplyFrame { text, is_last: false });
        }
        None
    }

    fn frame(&self, kind: &str) -> String {
        json!({ "type": kind, "requestId": self.id }).to_string()
    }
}

/// A frame of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyFrame {
    /// The frame's text.
    pub text: String,
    /// Whether it is the last frame of the answer.
    pub is_last: bool,
}
