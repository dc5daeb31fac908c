//! Maps clients' chat ids to conversations.

use everturn_wire::ConversationId;
use sha2::{Digest as _, Sha256};

/// The prefix of ids derived from chat ids that are not valid conversation ids.
const MADE: &str = "chat:";

/// Returns the conversation for a client's chat id, which may be any text.
///
/// A valid conversation id is used unchanged, so that the native API finds it under the same name. Any other id, and
/// one that begins with `chat:` or `ephemeral:`, becomes `chat:` and its SHA-256, so that different ids never share a
/// conversation.
pub fn conversation_of(id: &str) -> ConversationId {
    match ConversationId::parse(id) {
        Ok(plain) if !id.starts_with(MADE) && !plain.is_ephemeral() => plain,
        _ => {
            let digest: String = Sha256::digest(id).iter().map(|byte| format!("{byte:02x}")).collect();
            format!("{MADE}{digest}").into()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_id_has_a_conversation_of_its_own() {
        assert_eq!(conversation_of("aB3-x_9.z:1").as_str(), "aB3-x_9.z:1");
        let long = "x".repeat(200);
        let hashed = conversation_of("a b");
        let odd = [
            "",
            "a b",
            "a/b",
            "ü",
            ".",
            "..",
            "../x",
            "ephemeral:x",
            "chat:x",
            hashed.as_str(),
            long.as_str(),
        ];
        let found: BTreeSet<_> = odd.into_iter().map(conversation_of).collect();
        assert_eq!(found.len(), odd.len());
        for id in found {
            assert!(ConversationId::parse(id.as_str()).is_ok() && !id.is_ephemeral(), "{id}");
            assert!(id.as_str().starts_with("chat:"), "{id}");
        }
        assert_eq!(conversation_of("a b"), hashed);
    }
}
