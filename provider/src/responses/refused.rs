//! Remembers what an endpoint rejects, to omit it from later requests: its own reasoning, for instance after a change
//! of key or organisation, and requests for summaries, which OpenAI allows only for verified organisations.

use std::{
    collections::HashSet,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use everturn_wire::{Failure, Value};

use crate::call_id::digest;

/// The provider's code for rejected reasoning.
const CODE: &str = "invalid_encrypted_content";

/// The parameter named in the rejection of a summary.
const SUMMARY: &str = "reasoning.summary";

/// Maximum number of remembered items. A forgotten one is rejected once more.
const MOST: usize = 10_000;

/// What this process has seen rejected. Such items are in the history, so without this a conversation would fail for
/// ever.
#[derive(Debug, Default)]
pub(super) struct Refused {
    items: Mutex<HashSet<Digest>>,
    summaries: AtomicBool,
}

/// The parts of a request that may be rejected.
#[derive(Debug)]
pub(super) struct Sent {
    items: Vec<Digest>,
    summary: bool,
}

/// A hash of an item's encrypted content, which may be long.
type Digest = u64;

impl Refused {
    /// Removes known rejected parts from a request. Returns the parts left in it.
    pub(super) fn leave_out(&self, body: &mut Value) -> Sent {
        if self.summaries.load(Ordering::Relaxed)
            && let Some(Value::Object(reasoning)) = body.get_mut("reasoning")
        {
            reasoning.shift_remove("summary");
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

    /// Learns from the failure of a request. Marks the failure as retryable, because the next request will omit the
    /// rejected part.
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
