//! What a client is sent over a WebSocket.

use serde_json::json;

/// The answer to one request, as frames of `WebSocketChatTransport`.
#[derive(Debug)]
pub struct Reply {
    /// How its chunks begin.
    head: String,
    id: String,
    /// The number of the next chunk.
    sequence: u64,
}

impl Reply {
    /// The answer to the request with this id.
    pub fn new(request_id: &str) -> Self {
        let id = json!(request_id);
        let head = format!(r#"{{"type":"chunk","requestId":{id},"sequence":"#);
        Self { head, id: request_id.to_owned(), sequence: 0 }
    }

    /// Returns the frame before all others.
    pub fn start(&self) -> String {
        self.frame("start")
    }

    /// Returns the frame that says that no turn runs.
    pub fn no_active(&self) -> String {
        self.frame("no-active")
    }

    /// Returns the frame that refuses the request.
    pub fn error(&self, why: &str) -> String {
        json!({ "type": "error", "requestId": self.id, "errorText": why }).to_string()
    }

    /// Takes the next chunk off a stream, which consists of whole ones, and returns its frame. Comments are passed over. `None`:
    /// nothing is left.
    pub fn next(&mut self, stream: &mut &str) -> Option<ReplyFrame> {
        while let Some((event, rest)) = stream.split_once("\n\n") {
            *stream = rest;
            let Some(data) = event.strip_prefix("data: ") else { continue };
            if data == "[DONE]" {
                return Some(ReplyFrame { text: self.frame("end"), is_last: true });
            }
            // The chunk is JSON already: it is passed on as it is.
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
    /// Its text.
    pub text: String,
    /// Whether none follows.
    pub is_last: bool,
}
