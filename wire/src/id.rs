//! Ids: short opaque strings, cheap to clone.

use alloc::{format, string::String, sync::Arc};
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::CallerName;

/// Maximum length of a client's id, in bytes.
const MAX_LEN: usize = 128;

/// Separates a conversation's name from that of its caller.
const OF: char = '@';

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[cfg_attr(feature = "schema", schemars(transparent))]
        #[serde(transparent)]
        pub struct $name(#[cfg_attr(feature = "schema", schemars(with = "String"))] Arc<str>);

        impl $name {
            /// Returns the id as text.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(Arc::from(text))
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(Arc::from(text))
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(
    /// The id of a conversation: an append-only log of chunks with one writer.
    ConversationId
);
id!(
    /// The id of a turn.
    TurnId
);
id!(
    /// The id of a step (one model round trip of a turn). Opaque to clients, equal for all calls of one step.
    StepId
);

impl StepId {
    /// Creates the id `"<turn>#<step>"`, with steps counted from 0.
    pub fn new(turn: &TurnId, step: u32) -> Self {
        Self(Arc::from(format!("{turn}#{step}")))
    }

    /// Returns the number of the step if the id names a step of this turn.
    pub fn step_of(&self, turn: &TurnId) -> Option<u32> {
        self.0.strip_prefix(turn.as_str())?.strip_prefix('#')?.parse().ok()
    }

    /// Returns the number of the step, from 0, for any turn.
    pub fn step(&self) -> Option<u32> {
        self.0.rsplit_once('#')?.1.parse().ok()
    }
}

/// Whether URL normalization would remove the id from a path, so that no request could address it.
fn is_dots(text: &str) -> bool {
    matches!(text, "." | "..")
}

/// An invalid conversation id from a client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "conversation id {shown:?} is not valid: use 1 to {MAX_LEN} of the characters A-Z a-z 0-9 . _ : - but not . or .. alone"
)]
pub struct InvalidId {
    shown: String,
}

impl ConversationId {
    /// The prefix of the ids of ephemeral conversations.
    pub const EPHEMERAL: &'static str = "ephemeral:";

    /// Whether the conversation is ephemeral: not listed, and removed some time after its last turn.
    pub fn is_ephemeral(&self) -> bool {
        self.0.starts_with(Self::EPHEMERAL)
    }

    /// Returns the caller whose conversation it is; `None` = the administrator's.
    ///
    /// It is a part of the id, after an `@` that no client's id contains, so that what is stored, listed or locked by id is
    /// each caller's own. A caller sees and chooses only the part before it ([`Self::local`]).
    pub fn caller(&self) -> Option<&str> {
        self.0.rsplit_once(OF).map(|(_, caller)| caller)
    }

    /// Returns the name of this caller.
    pub fn caller_name(&self) -> Option<CallerName> {
        self.caller().and_then(|name| CallerName::parse(name).ok())
    }

    /// Returns the id as its caller knows it.
    pub fn local(&self) -> Self {
        self.0.rsplit_once(OF).map_or_else(|| self.clone(), |(local, _)| Self::from(local))
    }

    /// Returns the id of this caller's conversation with this name.
    #[must_use]
    pub fn of(&self, caller: &CallerName) -> Self {
        Self::from([self.as_str(), OF.encode_utf8(&mut [0; 1]), caller.as_str()].concat())
    }

    /// Parses an id chosen by a client, or one of a caller's conversation.
    ///
    /// # Errors
    /// As for [`Self::parse`].
    pub fn parse_any(text: &str) -> Result<Self, InvalidId> {
        match text.rsplit_once(OF) {
            Some((local, caller)) if CallerName::parse(caller).is_ok() => {
                Self::parse(local).map(|_| Self::from(text))
            }
            _ => Self::parse(text),
        }
    }

    /// Parses an id chosen by a client.
    ///
    /// # Errors
    /// Returns an error if it is empty, `.` or `..`, longer than 128 bytes, or has a character that would need escaping
    /// in a path or a log line.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let fits = |b: u8| b.is_ascii_alphanumeric() || b"._:-".contains(&b);
        if !is_dots(text) && !text.is_empty() && text.len() <= MAX_LEN && text.bytes().all(fits) {
            Ok(Self::from(text))
        } else {
            Err(InvalidId { shown: text.chars().take(MAX_LEN).collect() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_id_is_turn_and_step() {
        assert_eq!(StepId::new(&TurnId::from("t1"), 3).as_str(), "t1#3");
    }

    #[test]
    fn only_plain_conversation_ids_are_accepted() {
        assert!(ConversationId::parse("a-B_9.x:1").is_ok());
        for bad in ["", "a b", "a/b", "ä", "a\n", ".", "..", &"x".repeat(129)] {
            assert!(ConversationId::parse(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_caller_is_part_of_the_id() {
        let (ann, id) = (CallerName::parse("ann").unwrap(), ConversationId::from("ephemeral:x"));
        let of_ann = id.of(&ann);
        assert_eq!((of_ann.as_str(), of_ann.caller()), ("ephemeral:x@ann", Some("ann")));
        assert_eq!((of_ann.local(), id.local(), id.caller()), (id.clone(), id.clone(), None));
        assert!(of_ann.is_ephemeral() && ConversationId::parse("x@ann").is_err());
        for good in ["x", "x@ann"] {
            assert_eq!(ConversationId::parse_any(good).unwrap().as_str(), good);
        }
        for bad in ["@ann", "x@", "x@A", "x@a@b", "..@ann", "x y@ann"] {
            assert!(ConversationId::parse_any(bad).is_err(), "{bad:?}");
        }
    }
}
