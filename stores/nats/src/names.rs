//! Names of the stream and its subjects.

use everturn_wire::ConversationId;

/// The names of everything that a journal uses on its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    prefix: String,
}

impl Names {
    /// Returns the names that begin with `prefix`, or `None` if it is not a valid prefix: words of letters, digits, `_`
    /// and `-`, joined by dots, of at most 64 characters in total.
    pub fn new(prefix: &str) -> Option<Self> {
        let is_word = |word: &str| {
            !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
        };
        let is_valid = prefix.len() <= 64 && prefix.split('.').all(is_word);
        is_valid.then(|| Self { prefix: prefix.to_owned() })
    }

    /// Returns the name of the stream.
    pub fn stream(&self) -> String {
        self.prefix.to_ascii_uppercase().replace('.', "_")
    }

    /// Returns the subject of a conversation's appends.
    pub fn appends(&self, id: &ConversationId) -> String {
        format!("{}.c.{}", self.prefix, token(id))
    }

    /// Returns the subject of all conversations' appends.
    pub fn all_appends(&self) -> String {
        format!("{}.c.*", self.prefix)
    }

    /// Returns the subject on which stored appends of a conversation are published again.
    pub fn live(&self, id: &ConversationId) -> String {
        format!("{}.live.{}", self.prefix, token(id))
    }

    /// Returns the subject on which a node publishes streamed text of a conversation; node `*` = any.
    pub(crate) fn text(&self, node: &str, id: &ConversationId) -> String {
        format!("{}.text.{node}.{}", self.prefix, token(id))
    }

    /// Returns the subject of the notices of a node; `*` = of any.
    pub(crate) fn notices(&self, node: &str) -> String {
        format!("{}.notice.{node}", self.prefix)
    }

    /// Returns the subject of requests to a node.
    pub(crate) fn node(&self, node: &str) -> String {
        format!("{}.node.{node}", self.prefix)
    }

    /// Returns the pattern that maps [`Self::all_appends`] to [`Self::live`].
    pub(crate) fn all_live(&self) -> String {
        format!("{}.live.{{{{wildcard(1)}}}}", self.prefix)
    }

    /// Returns the subject of a conversation's titles.
    pub(crate) fn titles(&self, id: &ConversationId) -> String {
        format!("{}.t.{}", self.prefix, token(id))
    }

    pub(crate) fn all_titles(&self) -> String {
        format!("{}.t.*", self.prefix)
    }

    /// Returns the subject of a part of an append.
    pub(crate) fn part(&self, id: &ConversationId, append: &str, part: usize) -> String {
        format!("{}.b.{}.{append}.{part}", self.prefix, token(id))
    }

    /// Returns the subject of all parts of an append.
    pub(crate) fn parts(&self, id: &ConversationId, append: &str) -> String {
        format!("{}.b.{}.{append}.*", self.prefix, token(id))
    }

    /// Returns the subject of all parts of a conversation.
    pub(crate) fn parts_of(&self, id: &ConversationId) -> String {
        format!("{}.b.{}.*.*", self.prefix, token(id))
    }

    pub(crate) fn all_parts(&self) -> String {
        format!("{}.b.*.*.*", self.prefix)
    }

    /// Returns the subject of a conversation's bases. It looks like one of parts, so that streams of earlier versions have
    /// it, and removing a conversation removes it.
    pub(crate) fn bases(&self, id: &ConversationId) -> String {
        format!("{}.b.{}.base.log", self.prefix, token(id))
    }

    /// Returns the subject that tells which of a conversation's events were dropped.
    pub(crate) fn floor(&self, id: &ConversationId) -> String {
        format!("{}.b.{}.base.floor", self.prefix, token(id))
    }

    /// Returns the conversation and the append that a part's subject names.
    pub(crate) fn of_part(&self, subject: &str) -> Option<(ConversationId, String)> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix(".b.")?;
        let mut tokens = rest.split('.');
        Some((conversation_of(tokens.next()?)?, tokens.next()?.to_owned()))
    }

    /// Whether this is the subject of titles.
    pub(crate) fn is_title(&self, subject: &str) -> bool {
        subject.strip_prefix(&self.prefix).is_some_and(|rest| rest.starts_with(".t."))
    }

    /// Returns the conversation whose appends or titles have this subject.
    pub(crate) fn of_subject(&self, subject: &str) -> Option<ConversationId> {
        let rest = subject.strip_prefix(&self.prefix)?.strip_prefix('.')?;
        conversation_of(rest.split_once('.')?.1)
    }
}

/// Returns the part of subjects that stands for a conversation: its id, with every byte but `A-Z a-z 0-9 _ -` written as
/// `=` and two hexadecimal digits.
pub fn token(id: &ConversationId) -> String {
    let mut token = String::with_capacity(id.as_str().len());
    for byte in id.as_str().bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' => token.push(byte.into()),
            other => token.push_str(&format!("={other:02X}")),
        }
    }
    token
}

/// Returns the conversation that [`token`] returned this for; `None` if it did not.
pub fn conversation_of(token: &str) -> Option<ConversationId> {
    let (mut id, mut rest) = (Vec::with_capacity(token.len()), token.as_bytes());
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        if *byte == b'=' {
            let (digits, after) = rest.split_at_checked(2)?;
            id.push(u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            id.push(*byte);
        }
    }
    let id = ConversationId::from(str::from_utf8(&id).ok()?);
    (self::token(&id) == token).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_and_its_token_stand_for_each_other() {
        for name in ["a", "a.b", "ephemeral:x", "a b", "ä*>", "=", ".", "a=2Eb", &"x".repeat(128)] {
            let token = token(&name.into());
            assert!(
                token.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-=".contains(&byte)),
                "{token}"
            );
            assert_eq!(conversation_of(&token), Some(name.into()));
        }
        for bad in ["a.b", "=2", "=2e", "=41", "=+1", "ä", "=FF"] {
            assert_eq!(conversation_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn names_are_found_again_in_subjects() {
        let (names, id) = (Names::new("a.b").unwrap(), ConversationId::from("x.y z"));
        assert_eq!(names.stream(), "A_B");
        assert_eq!(names.of_subject(&names.appends(&id)), Some(id.clone()));
        assert_eq!(names.of_subject(&names.titles(&id)), Some(id.clone()));
        assert!(names.is_title(&names.titles(&id)) && !names.is_title(&names.appends(&id)));
        assert_eq!(names.of_part(&names.part(&id, "me-7", 3)), Some((id, "me-7".to_owned())));
    }

    #[test]
    fn a_prefix_is_words_joined_by_dots() {
        for bad in ["", ".", "a.", ".a", "a..b", "a b", "a*", ">", "$a", &"x".repeat(65)] {
            assert_eq!(Names::new(bad), None, "{bad:?}");
        }
    }
}
