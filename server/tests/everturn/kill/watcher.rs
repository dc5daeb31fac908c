//! A client that reconnects with its last cursor.

use std::{fs, path::PathBuf};

use everturn_sim::history::Seen;
use serde_json::{Value, json};

use crate::{client::Socket, home::Server};

/// Everything that one client received, over all its connections.
#[derive(Default)]
pub(crate) struct Watcher {
    pub(crate) cursor: Option<String>,
    pub(crate) events: Vec<Value>,
    /// What it asked for and was told, for the checker of histories.
    pub(crate) seen: Vec<Seen>,
    /// The number of journal calls made when each event was received.
    pub(crate) calls: Vec<usize>,
    /// The call log of the current process.
    pub(crate) log: PathBuf,
    /// Number of answers sent to requests for approval.
    pub(crate) answers: usize,
    /// The trace of the tool that needs approval.
    pub(crate) trace: Option<PathBuf>,
}

/// Why a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Over {
    /// The turn is sealed.
    Sealed,
    /// The server is gone.
    Lost,
    /// Enough events were received.
    Enough,
}

impl Watcher {
    /// Watches from its last position, until the next turn is sealed or this many events were received.
    pub(crate) async fn watch(&mut self, server: &Server, most: usize) -> Over {
        let Some(mut socket) = Socket::try_open(server, "/ws").await else { return Over::Lost };
        let shown = self.cursor.as_deref().unwrap_or("0");
        let cursor = shown.parse().unwrap();
        let subscribe =
            json!({ "type": "chat.subscribe", "conversationId": "c1", "cursor": shown, "extensions": true });
        if !socket.try_say(&subscribe).await || !self.answer(&mut socket).await {
            return Over::Lost;
        }
        self.seen.push(Seen::Asked(cursor));
        for _ in 0..most {
            let Some(mut delta) = socket.try_hear("chat.delta").await else { return Over::Lost };
            let cursor = delta["cursor"].as_str().unwrap().to_owned();
            let event = serde_json::from_value(delta["event"].clone()).unwrap();
            self.seen.push(Seen::Told(cursor.parse().unwrap(), event));
            self.cursor = Some(cursor);
            self.events.push(delta["event"].take());
            self.calls.push(fs::read_to_string(&self.log).unwrap_or_default().len());
            if self.is_sealed() {
                return Over::Sealed;
            }
            let is_asked = self.events.last().is_some_and(|event| event["type"] == "approval-requested");
            if is_asked && !self.answer(&mut socket).await {
                return Over::Lost;
            }
        }
        Over::Enough
    }

    /// Approves a pending call, if any. Returns whether the server still runs.
    async fn answer(&mut self, socket: &mut Socket) -> bool {
        let of = |kind: &str| self.events.iter().rposition(|event| event["type"] == kind);
        let Some(asked) = of("approval-requested") else { return true };
        if of("approval-resolved").is_some_and(|resolved| resolved > asked) {
            return true;
        }
        let has_run = self.trace.as_ref().is_some_and(|trace| trace.exists());
        assert!(self.answers > 0 || !has_run, "the tool ran before anybody allowed it");
        let request = &self.events[asked];
        let answer = json!({
            "type": "approval.answer", "conversationId": "c1", "turnId": request["turnId"],
            "stepId": request["stepId"], "toolCallId": request["toolCallId"], "verdict": "allowed",
        });
        self.answers += 1;
        socket.try_say(&answer).await
    }

    pub(crate) fn is_sealed(&self) -> bool {
        self.events.last().is_some_and(|event| event["type"] == "turn-sealed")
    }

    pub(crate) fn count(&self, kind: &str) -> usize {
        self.events.iter().filter(|event| event["type"] == kind).count()
    }

    /// Returns the received results of this call that were not withdrawn with their step.
    pub(crate) fn results(&self, call: &str) -> Vec<&str> {
        let of_call = |event: &Value| event["type"] == "tool-result" && event["toolCallId"] == call;
        let stays = |(at, event): &(usize, &Value)| {
            let withdraws =
                |later: &Value| later["type"] == "step-rewound" && later["stepId"] == event["stepId"];
            of_call(event) && !self.events[*at..].iter().any(withdraws)
        };
        let events = self.events.iter().enumerate().filter(stays);
        events.map(|(_, event)| event["content"].as_str().unwrap()).collect()
    }

    /// Returns the text on its screen.
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

    /// Whether this number of requests is explained by the received events: one for each step, retry and rewind, and
    /// one for each overflow and its summary. Each kill may have come between the event and its request. Nothing is
    /// shown of a summary, so an interrupted one is not rewound.
    pub(crate) fn accounts_for(&self, requests: usize, kills: usize) -> bool {
        let of_answers = ["step-complete", "provider-retry", "step-rewound"].map(|kind| self.count(kind));
        let of_summaries = ["compaction-started", "compaction-completed"].map(|kind| self.count(kind));
        let told = of_answers.iter().chain(&of_summaries).sum::<usize>();
        let untold = if of_summaries == [0, 0] { 0 } else { kills };
        requests <= told + untold && told <= requests + kills
    }
}
