//! A client that comes back with its last cursor, as a good client does.

use everturn_sim::Loopback;
use serde_json::{Value, json};

use crate::{client::Socket, home::Server};

/// All that one client was told of a conversation, over all its connections.
#[derive(Default)]
pub(crate) struct Watcher {
    cursor: Option<String>,
    pub(crate) events: Vec<Value>,
}

/// Why a connection is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The turn is sealed.
    Sealed,
    /// The server is gone.
    Lost,
    /// As many events were heard as were wanted.
    Enough,
}

impl Watcher {
    /// Watches from where it left off, until the next turn is sealed or that many events were heard.
    pub(crate) async fn watch(&mut self, server: &Server, most: usize) -> Over {
        let Some(mut socket) = Socket::try_open(server, "/ws").await else { return Over::Lost };
        let cursor = self.cursor.as_deref().unwrap_or("0");
        let subscribe =
            json!({ "type": "chat.subscribe", "conversationId": "c1", "cursor": cursor, "extensions": true });
        if !socket.try_say(&subscribe).await {
            return Over::Lost;
        }
        for _ in 0..most {
            let Some(mut delta) = socket.try_hear("chat.delta").await else { return Over::Lost };
            self.cursor = Some(delta["cursor"].as_str().unwrap().to_owned());
            self.events.push(delta["event"].take());
            if self.is_sealed() {
                return Over::Sealed;
            }
        }
        Over::Enough
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.events.last().is_some_and(|event| event["type"] == "turn-sealed")
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.events.iter().filter(|event| event["type"] == kind).count()
    }

    /// The results of tools that it was told.
    pub(crate) fn results(&self) -> Vec<&str> {
        let results = self.events.iter().filter(|event| event["type"] == "tool-result");
        results.map(|event| event["content"].as_str().unwrap()).collect()
    }

    /// The text on its screen.
    pub(crate) fn text(&self) -> String {
        let (mut text, mut step) = (String::new(), String::new());
        for event in &self.events {
            match event["type"].as_str().unwrap() {
                "text-delta" => step.push_str(event["delta"].as_str().unwrap()),
                "step-rewound" => step.clear(),
                "step-complete" => text.push_str(&std::mem::take(&mut step)),
                _ => {}
            }
        }
        text + &step
    }

    /// Whether the requests at the socket are those that were told: one for each step, one for each retry and one for
    /// each rewind; each kill may have come between the telling and the asking.
    pub(crate) fn accounts_for(&self, provider: &Loopback, kills: usize) -> bool {
        let told = self.count("step-complete") + self.count("provider-retry") + self.count("step-rewound");
        let requests = provider.counts().requests;
        requests <= told && told <= requests + kills
    }
}
