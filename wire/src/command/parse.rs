//! Parses a frame into a command.

use alloc::{
    borrow::Cow,
    format,
    string::{String, ToString},
};
use core::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};

use super::{Command, fields};
use crate::ConversationId;

/// A frame that is not a valid command. The text is sent to the client.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// Not JSON.
    #[error("the frame is not JSON: {0}")]
    NotJson(String),
    /// JSON without a `type`.
    #[error("the frame must be a JSON object with a string field \"type\"")]
    NoType,
    /// A `type` that does not exist.
    #[error("unknown command type {kind:?}; known types: {}", Command::TYPES.join(", "))]
    UnknownType {
        /// The type that was sent.
        kind: String,
    },
    /// A known command with missing or invalid fields.
    #[error("{kind}: {detail}")]
    BadFields {
        /// The command.
        kind: String,
        /// What is wrong with it.
        detail: String,
        /// The conversation it names, if the id is valid, so that the answer can name it too.
        conversation_id: Option<ConversationId>,
    },
}

impl Command {
    /// All command types.
    pub const TYPES: [&'static str; 12] = [
        "chat.send",
        "chat.subscribe",
        "chat.unsubscribe",
        "chat.queue",
        "chat.queue.cancel",
        "chat.stop",
        "chat.retry",
        "retry.abort",
        "retry.now",
        "retry.set",
        "approval.answer",
        "question.answer",
    ];

    /// Parses one frame. Uses at most four times the memory of the frame, whatever it contains, because a string with
    /// an escape is assembled before it is copied. The schema of a report takes more, and is limited to 64 KiB.
    ///
    /// # Errors
    /// Returns an error if the frame is not JSON, has no `type` or an unknown one, or lacks a field.
    pub fn parse(frame: &str) -> Result<Self, CommandError> {
        let head = Head::read(frame).map_err(|e| CommandError::NotJson(e.to_string()))?;
        let kind = head.kind.0.ok_or(CommandError::NoType)?;
        if !Self::TYPES.contains(&kind.as_ref()) {
            return Err(CommandError::UnknownType { kind: kind.chars().take(64).collect() });
        }
        // An invalid id may be long. Keeping it would hold it twice while the fields are read.
        let conversation_id = head.conversation_id.0.and_then(|id| ConversationId::parse_any(&id).ok());
        fields::read(&kind, frame).map_err(|e| CommandError::BadFields {
            kind: kind.into_owned(),
            detail: detail(&e),
            conversation_id,
        })
    }
}

/// Maximum length of a reported problem, in characters. Serde may quote unexpected input of any length.
const MAX_DETAIL: usize = 256;

/// Returns the problem without its position: a frame is one line, and its author knows the fields.
fn detail(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    text.strip_suffix(&place).unwrap_or(&text).chars().take(MAX_DETAIL).collect()
}

/// The parts of a frame needed before its fields can be read or rejected.
#[derive(Default)]
struct Head<'a> {
    kind: Text<'a>,
    conversation_id: Text<'a>,
}

/// A string, if the value is one.
#[derive(Default)]
struct Text<'a>(Option<Cow<'a, str>>);

impl<'a> Head<'a> {
    fn read(frame: &'a str) -> Result<Self, serde_json::Error> {
        if frame.trim_start().starts_with('{') {
            return serde_json::from_str(frame);
        }
        serde_json::from_str::<IgnoredAny>(frame).map(|_| Self::default())
    }
}

impl<'de> Deserialize<'de> for Head<'de> {
    fn deserialize<D: Deserializer<'de>>(frame: D) -> Result<Self, D::Error> {
        frame.deserialize_map(HeadVisitor)
    }
}

struct HeadVisitor;

impl<'de> Visitor<'de> for HeadVisitor {
    type Value = Head<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut head = Head::default();
        while let Some(name) = map.next_key::<Text<'_>>()? {
            match name.0.as_deref() {
                Some("type") => head.kind = map.next_value()?,
                Some("conversationId") => head.conversation_id = map.next_value()?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(head)
    }
}

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(value: D) -> Result<Self, D::Error> {
        value.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Borrowed(text))))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Some(Cow::Owned(text.to_string()))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Text(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Text(None))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(Text(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(Text(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_that_are_not_commands_are_distinguished() {
        assert!(matches!(Command::parse("{"), Err(CommandError::NotJson(_))));
        assert_eq!(Command::parse("[]"), Err(CommandError::NoType));
        assert_eq!(Command::parse(r#"{"type":7}"#), Err(CommandError::NoType));
        assert!(matches!(Command::parse(r#"{"type":"x"}"#), Err(CommandError::UnknownType { .. })));
        let missing = Command::parse(r#"{"type":"chat.queue","conversationId":"c"}"#).unwrap_err();
        assert_eq!(missing.to_string(), "chat.queue: missing field `text`");
    }

    #[test]
    fn a_rejected_command_names_its_conversation_wherever_the_id_is() {
        for frame in [
            r#"{"type":"chat.queue","conversationId":"c"}"#,
            r#"{"conversationId":"c","text":{"a":[1,-2,3.5,null,true]},"typ\u0065":"chat.queue"}"#,
        ] {
            let Err(CommandError::BadFields { conversation_id, .. }) = Command::parse(frame) else {
                panic!("{frame}")
            };
            assert_eq!(conversation_id, Some("c".into()), "{frame}");
        }
        for kind in ["null", "true", "-1", "1", "1.5", "[]", "{}", "[{\"a\":1}]"] {
            let frame = alloc::format!(r#"{{"type":{kind}}}"#);
            assert_eq!(Command::parse(&frame), Err(CommandError::NoType), "{frame}");
        }
        assert!(matches!(
            Command::parse(r#"{"type":"chat.stop","conversationId":"c"}x"#),
            Err(CommandError::NotJson(_))
        ));
    }

    #[test]
    fn a_value_of_the_wrong_type_is_quoted_briefly() {
        let long = "x".repeat(1000);
        for (fields, why) in [
            (r#""extensions":"LONG""#, "chat.send: expected true or false, got a string"),
            (r#""images":"LONG""#, "chat.send: expected a list of images, got a string"),
            (r#""images":["LONG"]"#, "chat.send: expected an image, got a string"),
            (r#""images":7"#, "chat.send: invalid type: integer `7`, expected a list of images"),
        ] {
            let frame = format!(r#"{{"type":"chat.send","message":"",{}}}"#, fields.replace("LONG", &long));
            assert_eq!(Command::parse(&frame).unwrap_err().to_string(), why);
        }
        let word = format!(r#"{{"type":"retry.set","enabled":"{long}"}}"#);
        let why = "retry.set: enabled must be true or false, or null to inherit it";
        assert_eq!(Command::parse(&word).unwrap_err().to_string(), why);
        let settings = format!(r#"{{"type":"chat.send","message":"","retry":"{long}"}}"#);
        let why = "chat.send: expected an object with retry settings, got a string";
        assert_eq!(Command::parse(&settings).unwrap_err().to_string(), why);
    }

    #[test]
    fn a_long_problem_is_cut_between_characters() {
        let long = <serde_json::Error as serde::de::Error>::custom("ä".repeat(1000));
        assert_eq!(detail(&long), "ä".repeat(256));
    }

    #[test]
    fn optional_fields_may_be_null() {
        let with = r#"{"type":"chat.send","message":"","images":null,"extensions":null}"#;
        assert_eq!(Command::parse(with), Command::parse(r#"{"type":"chat.send","message":""}"#));
    }

    #[test]
    fn unknown_fields_are_ignored() {
        let command = Command::parse(r#"{"type":"chat.stop","conversationId":"c","later":1}"#).unwrap();
        assert_eq!(command, Command::ChatStop { conversation_id: "c".into() });
    }
}
