//! Idempotency keys: a repeated request finds the turn that it started.
//!
//! The turn id is derived from the key and the content of the request, so neither needs to be stored elsewhere.

use everturn_wire::{CallerName, ConversationId, Priority, TurnId};
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::StartTurn;
use crate::Error;

/// Maximum length of a key, in bytes.
const MAX_KEY: usize = 255;

/// Digests of a key and of the content of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RequestKey {
    key: String,
    content: String,
    caller: Option<CallerName>,
}

impl RequestKey {
    /// Returns the key of a request, if it has one.
    ///
    /// # Errors
    /// When the key is invalid.
    pub(super) fn of(start: &StartTurn) -> Result<Option<Self>, Error> {
        let Some(key) = &start.idempotency_key else { return Ok(None) };
        if key.is_empty() || key.len() > MAX_KEY || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let why = format!("its idempotency key must have 1 to {MAX_KEY} visible ASCII characters");
            return Err(Error::BadMessage { why });
        }
        let content = (
            (&start.conversation_id, &start.text, &start.images, &start.model, &start.reasoning_effort),
            (&start.retry, start.approvals, &start.history, &start.tools, &start.parameters, start.ephemeral),
            &start.final_report,
        );
        // A request with none of these has the digest that former versions gave it.
        let content = if start.bare { digest(&(content, "bare")) } else { digest(&content) };
        let content = match (&start.model_settings, start.priority) {
            (None, Priority::Interactive) => content,
            more => digest(&(content, more)),
        };
        // Callers may use the same key for different turns.
        let key = start.caller.as_ref().map_or_else(|| digest(key), |name| digest(&(key, name.as_str())));
        Ok(Some(Self { key, content, caller: start.caller.clone() }))
    }

    /// Returns the id of the turn that the request starts.
    pub(super) fn turn_id(&self) -> TurnId {
        format!("key-{}-{}", self.key, self.content).into()
    }

    /// Whether this key started the turn, whatever the content of the request.
    pub(super) fn began(&self, turn: &TurnId) -> bool {
        let rest = turn.as_str().strip_prefix("key-").and_then(|rest| rest.strip_prefix(self.key.as_str()));
        rest.is_some_and(|rest| rest.starts_with('-'))
    }

    /// Returns the ids of the conversations that this key creates if its request names none: permanent, and ephemeral.
    pub(super) fn conversations(&self) -> [ConversationId; 2] {
        let lasting = format!("key-{}", self.key);
        let both = [lasting.clone(), format!("{}{lasting}", ConversationId::EPHEMERAL)].map(Into::into);
        both.map(|id: ConversationId| self.caller.as_ref().map_or(id.clone(), |name| id.of(name)))
    }
}

/// Returns the first 128 bits of the value's SHA-256, as hex.
fn digest(value: &(impl Serialize + ?Sized)) -> String {
    let json = serde_json::to_vec(value).unwrap_or_default();
    Sha256::digest(json).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use everturn_wire::ModelSettings;

    use super::*;

    fn key(key: &str, text: &str) -> RequestKey {
        let start = StartTurn { idempotency_key: Some(key.into()), ..StartTurn::new(text) };
        RequestKey::of(&start).unwrap().unwrap()
    }

    #[test]
    fn the_id_says_which_key_and_what_was_asked() {
        let first = key("a", "hi");
        assert_eq!(first.turn_id(), key("a", "hi").turn_id());
        assert_ne!(first.turn_id(), key("a", "ho").turn_id());
        assert!(first.began(&key("a", "ho").turn_id()));
        assert!(!first.began(&key("b", "hi").turn_id()) && !first.began(&"t".into()));
        for id in first.conversations() {
            assert_eq!(ConversationId::parse(id.as_str()).unwrap(), id);
        }
    }

    #[test]
    fn settings_and_priority_belong_to_what_was_asked() {
        let start = StartTurn { idempotency_key: Some("a".into()), ..StartTurn::new("hi") };
        let brief = ModelSettings { system_prompt: Some("Be brief.".into()), ..ModelSettings::default() };
        for other in [
            StartTurn { model_settings: Some(brief), ..start.clone() },
            StartTurn { priority: Priority::Background, ..start },
        ] {
            assert_ne!(RequestKey::of(&other).unwrap().unwrap().turn_id(), key("a", "hi").turn_id());
        }
    }

    #[test]
    fn callers_do_not_share_a_key() {
        let of = |caller: Option<&str>| {
            let caller = caller.map(|name| CallerName::parse(name).unwrap());
            let start = StartTurn { idempotency_key: Some("a".into()), caller, ..StartTurn::new("hi") };
            RequestKey::of(&start).unwrap().unwrap()
        };
        let (nobody, ann, ben) = (of(None), of(Some("ann")), of(Some("ben")));
        assert_eq!(nobody, key("a", "hi"));
        assert!(!ann.began(&ben.turn_id()) && !ann.began(&nobody.turn_id()));
        assert!(ann.conversations().iter().all(|id| id.caller() == Some("ann")));
        assert_ne!(ann.conversations().map(|id| id.local()), ben.conversations().map(|id| id.local()));
    }

    #[test]
    fn a_key_that_no_header_carries_is_refused() {
        for bad in ["", "a b", "a\n", "ä", &"x".repeat(256)] {
            let start = StartTurn { idempotency_key: Some(bad.into()), ..StartTurn::new("hi") };
            assert!(RequestKey::of(&start).is_err(), "{bad:?}");
        }
    }
}
