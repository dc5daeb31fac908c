//! Reasoning that the endpoint gave and does not take back, after a change of key or organisation for instance.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Mutex, PoisonError},
};

use everturn_wire::{Failure, Value};

/// The provider's code for it.
const CODE: &str = "invalid_encrypted_content";

/// How many items are remembered. One that is forgotten is refused once more.
const MOST: usize = 10_000;

/// Items that were refused in this process. Without them a conversation would be refused for ever: they are in its
/// history.
#[derive(Debug, Default)]
pub(super) struct Refused {
    items: Mutex<HashSet<Digest>>,
}

/// An item's encrypted content, which may be long.
type Digest = u64;

impl Refused {
    /// Takes them out of a request. Says which others are left in it.
    pub(super) fn leave_out(&self, body: &mut Value) -> Vec<Digest> {
        let refused = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        let mut left = Vec::new();
        if let Some(input) = body["input"].as_array_mut() {
            input.retain(|item| {
                let digest = digest(item);
                let kept = digest.is_none_or(|digest| !refused.contains(&digest));
                left.extend(digest.filter(|_| kept));
                kept
            });
        }
        left
    }

    /// Learns from the failure of a request that had these. It is worth another attempt, which will be without them.
    pub(super) fn learn(&self, sent: &[Digest], failure: &mut Failure) {
        if sent.is_empty() || failure.provider_code.as_deref() != Some(CODE) {
            return;
        }
        failure.retryable = true;
        let mut refused = self.items.lock().unwrap_or_else(PoisonError::into_inner);
        if refused.len() + sent.len() > MOST {
            refused.clear();
        }
        refused.extend(sent.iter().take(MOST));
    }
}

fn digest(item: &Value) -> Option<Digest> {
    let content = item["encrypted_content"].as_str()?;
    let mut hasher = DefaultHasher::new();
    content.hash(&mut hasher);
    Some(hasher.finish())
}
