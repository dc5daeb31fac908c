//! Pages of the conversation list.

use std::{fmt, str::FromStr};

use everturn_kernel::Millis;
use everturn_wire::{CallerName, ConversationId};

use super::Head;
use crate::cursor::InvalidCursor;

/// A page of the conversation list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// Start after this cursor.
    pub after: Option<ListCursor>,
    /// Maximum number of conversations.
    pub limit: Option<usize>,
    /// Only conversations of this caller; `None` = of all.
    pub caller: Option<CallerName>,
}

/// The last conversation of the previous page, as `<milliseconds>-<id>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListCursor {
    /// When its latest chunk was added.
    pub last_activity_at: Millis,
    /// The conversation.
    pub id: ConversationId,
}

impl Page {
    /// Whether a conversation is of the page's caller.
    pub fn is_of_caller(&self, id: &ConversationId) -> bool {
        self.caller.as_ref().is_none_or(|caller| id.caller() == Some(caller.as_str()))
    }

    /// Whether a conversation is listed after the page's cursor.
    pub(super) fn has(&self, id: &ConversationId, head: &Head) -> bool {
        !id.is_ephemeral()
            && self.is_of_caller(id)
            && self.after.as_ref().is_none_or(|after| {
                after.last_activity_at.cmp(&head.last_activity_at).then_with(|| id.cmp(&after.id)).is_gt()
            })
    }
}

impl fmt::Display for ListCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.last_activity_at.0, self.id)
    }
}

impl FromStr for ListCursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let parsed = text.split_once('-').and_then(|(at, id)| {
            let is_plain = !at.is_empty() && at.bytes().all(|byte| byte.is_ascii_digit());
            let at = at.parse().ok().filter(|_| is_plain)?;
            Some(Self { last_activity_at: Millis(at), id: ConversationId::parse_any(id).ok()? })
        });
        parsed.ok_or_else(|| InvalidCursor { shown: text.chars().take(64).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_as_it_is_written() {
        let cursor = ListCursor { last_activity_at: Millis(1_700_000_000_000), id: "a-b:1".into() };
        assert_eq!(cursor.to_string().parse::<ListCursor>().unwrap(), cursor);
        let cursor = ListCursor { id: "a-b@c-d".into(), ..cursor };
        assert_eq!(cursor.to_string().parse::<ListCursor>().unwrap(), cursor);
        for bad in ["", "-", "1", "1-", "-a", "+1-a", "x-a", "1-a b", "99999999999999999999-a"] {
            assert!(bad.parse::<ListCursor>().is_err(), "{bad:?}");
        }
    }
}
