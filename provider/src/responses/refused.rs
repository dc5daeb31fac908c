//! What an endpoint refuses, so that it is left out of the next request: reasoning that it gave, after a change of key or
//! organisation for instance, and the wish for summaries, which OpenAI grants to verified organisations alone.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use everturn_wire::{Failure, Value};

use crate::call_id::digest;

/// The provider's code for reasoning that it does not take back.
const CODE: &str = "invalid_encrypted_content";

/// What the refusal of a summary names, as the parameter at fault.
const SUMMARY: &str = "reasoning.summary";

/// How many items are remembered. One that is forgotten is refused once more.
const MOST: usize = 10_000;

/// What was refused in this process. With such items a conversation would be refused for ever: they are in its history.
#[derive(Debug, Default)]
pub(super) struct Refused {
    items: Mutex<HashSet<Digest>>,
    summaries: AtomicBool,
}

/// What a request has that may be refused.
#[derive(Debug)]
pub(super) struct Sent {
    items: Vec<Digest>,
    summary: bool,
}

/// An item's encrypted content, which may be long.
type Digest = u64;

impl Refused {
    /// Takes it out of a request. Says what else of the kind is left in it.
    pub(super) fn leave_out(&self, body: &mut Value) -> Sent {
        if self.summaries.load(Ordering::Relaxed)
            && let Some(Value::Object(reasoning)) = body.get_mut("reasoning")
        {
            reasoning.remove("summary");
        }
        Sent { summary: body["reasoning"].get("summary").is_some(), items: self.leave_items_out(body) }
    }

    fn leave_items_out(&self, body: &mut Value) -> Vec<Digest> {
        let refused = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = Vec::new();
        if let Some(input) = body["input"].as_array_mut() {
            input.retain(|item| {
                let digest = item["encrypted_content"].as_str().map(digest);
                let kept = digest.is_none_or(|digest| !refused.contains(&digest));
                left.extend(digest.filter(|_| kept));
                kept
            });
        }
        left
    }

    /// Learns from the failure of a request that had this. It is worth another attempt, which will be without.
    pub(super) fn learn(&self, sent: &Sent, failure: &mut Failure) {
        if !sent.items.is_empty() && failure.provider_code.as_deref() == Some(CODE) {
            self.refuse(&sent.items);
            failure.retryable = true;
        }
        if sent.summary && !failure.retryable && failure.message.contains(SUMMARY) {
            self.summaries.store(true, Ordering::Relaxed);
            failure.retryable = true;
        }
    }

    fn refuse(&self, sent: &[Digest]) {
        let mut refused = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() + sent.len() > MOST {
            refused.clear();
        }
        refused.extend(sent.iter().take(MOST));
    }
}
