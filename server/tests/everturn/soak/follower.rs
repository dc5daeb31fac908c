//! A client that follows one conversation over all its connections and servers.

use serde_json::{Value, json};

use crate::{client::Socket, home::Server};

pub(crate) struct Follower {
    pub(crate) conversation: String,
    cursor: u64,
}

/// A turn as it was told.
pub(crate) struct Turn {
    pub(crate) text: String,
    pub(crate) reason: String,
}

impl Follower {
    pub(crate) fn new(conversation: String) -> Self {
        Self { conversation, cursor: 0 }
    }

    /// Returns the next turn once it is sealed; `None` if the server is gone before. Then `events` has what was told so far, for
    /// the next server.
    pub(crate) async fn turn(
        &mut self,
        server: &Server,
        token: &str,
        events: &mut Vec<Value>,
    ) -> Option<Turn> {
        let mut socket = Socket::try_open_as(server, "/ws", token).await?;
        let subscribe = json!({ "type": "chat.subscribe", "conversationId": self.conversation,
            "cursor": self.cursor.to_string(), "extensions": true });
        if !socket.try_say(&subscribe).await {
            return None;
        }
        while events.last().is_none_or(|event| event["type"] != "turn-sealed") {
            let mut delta = socket.try_hear("chat.delta").await?;
            let cursor = delta["cursor"].as_str().unwrap().parse().unwrap();
            assert!(cursor > self.cursor, "{cursor} after {}", self.cursor);
            self.cursor = cursor;
            events.push(delta["event"].take());
        }
        Some(told(events))
    }
}

/// # Panics
/// If anything that happens once in a turn was told twice, or not at all.
fn told(events: &[Value]) -> Turn {
    let (mut text, mut step) = (String::new(), String::new());
    let mut once = [("user-message", 0), ("done", 0), ("turn-sealed", 0)];
    let mut reason = "";
    for event in events {
        let kind = event["type"].as_str().unwrap();
        for (_, count) in once.iter_mut().filter(|(name, _)| *name == kind) {
            *count += 1;
        }
        match kind {
            "text-delta" => step.push_str(event["delta"].as_str().unwrap()),
            "step-rewound" => step.clear(),
            "step-complete" => text.push_str(&std::mem::take(&mut step)),
            "done" => reason = event["reason"].as_str().unwrap(),
            _ => {}
        }
    }
    assert!(once.iter().all(|(_, count)| *count == 1), "{once:?}: {events:#?}");
    Turn { text: text + &step, reason: reason.to_owned() }
}
