//! Reading many messages of a subject with one request, from any server that has the stream.

use std::pin::pin;

use async_nats::{HeaderMap, Message, StatusCode};
use futures_util::StreamExt as _;
use serde_json::json;
use tokio::time;

use crate::{entry::Entry, leader::Leader};

/// Maximum number of messages in a batch, and of their bytes; at least one message is sent.
pub(crate) const MESSAGES: usize = 256;
const BYTES: usize = 4 << 20;

impl Leader {
    /// Returns messages of a subject from this sequence, in order. May end anywhere: the server may be behind the leader,
    /// or not answer.
    pub(crate) async fn batch(&self, subject: &str, from: u64, most: usize) -> Vec<Entry> {
        let mut entries = Vec::new();
        let api = format!("$JS.API.DIRECT.GET.{}", self.names().stream());
        let ask = json!({
            "seq": from,
            "next_by_subj": subject,
            "batch": most.clamp(1, MESSAGES),
            "max_bytes": BYTES,
        });
        let inbox = self.client.new_inbox();
        let Ok(answers) = self.client.subscribe(inbox.clone()).await else { return entries };
        if self.client.publish_with_reply(api, inbox, ask.to_string().into()).await.is_err() {
            return entries;
        }
        let mut answers = pin!(answers);
        while let Ok(Some(message)) = time::timeout(self.answer_within, answers.next()).await {
            // 204 = the end of the batch, 404 = nothing found; anything else is a failure.
            let Some(entry) = entry(message) else { break };
            entries.push(entry);
        }
        entries
    }
}

fn entry(message: Message) -> Option<Entry> {
    if message.status.is_some_and(|status| status != StatusCode::OK) {
        return None;
    }
    let headers = message.headers?;
    Some(Entry { sequence: sequence(&headers)?, headers, payload: message.payload })
}

fn sequence(headers: &HeaderMap) -> Option<u64> {
    headers.get(async_nats::header::NATS_SEQUENCE)?.as_str().parse().ok()
}
