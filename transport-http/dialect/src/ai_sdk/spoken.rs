//! The messages of a request. Of all but the last ones, only the role and id are kept.

use std::fmt;

use everturn_wire::Image;
use serde::{
    Deserialize, Deserializer,
    de::{Error as _, SeqAccess, Visitor},
};

use crate::{few::Few, lenient};

/// Maximum number of messages. No conversation has more chunks.
const MOST: usize = 10_000;

/// A message as received.
#[derive(Deserialize)]
pub(super) struct Spoken {
    #[serde(default)]
    pub(super) id: String,
    pub(super) role: Role,
    pub(super) parts: Option<Few<Part>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    User,
    Assistant,
    #[serde(other)]
    Other,
}

/// A part of a message. Which fields it has depends on its type.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Part {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default, deserialize_with = "lenient::text")]
    pub(super) text: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    pub(super) url: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    pub(super) media_type: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    pub(super) state: Option<String>,
    #[serde(default, deserialize_with = "lenient::text")]
    pub(super) tool_call_id: Option<String>,
    pub(super) approval: Option<Approval>,
}

#[derive(Deserialize)]
pub(super) struct Approval {
    pub(super) id: String,
    pub(super) approved: Option<bool>,
    #[serde(default, deserialize_with = "lenient::text")]
    pub(super) reason: Option<String>,
}

/// What is kept of a message list.
#[derive(Default)]
pub(super) struct Spokens {
    /// The role of each message, and the id of each assistant message.
    pub(super) trail: Vec<(Role, String)>,
    /// The last message.
    pub(super) last: Option<Spoken>,
    /// The last assistant message, unless it is the last message.
    pub(super) assistant: Option<Spoken>,
}

impl Spokens {
    pub(super) fn push(&mut self, message: Spoken) {
        let id = if message.role == Role::Assistant { message.id.clone() } else { String::new() };
        self.trail.push((message.role, id));
        if let Some(before) = self.last.replace(message)
            && before.role == Role::Assistant
        {
            self.assistant = Some(before);
        }
    }
}

impl<'de> Deserialize<'de> for Spokens {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Messages;
        impl<'de> Visitor<'de> for Messages {
            type Value = Spokens;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of messages")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Spokens, A::Error> {
                let mut spokens = Spokens::default();
                while let Some(message) = list.next_element()? {
                    if spokens.trail.len() == MOST {
                        return Err(A::Error::custom(format!("more than {MOST} messages")));
                    }
                    spokens.push(message);
                }
                Ok(spokens)
            }
        }
        deserializer.deserialize_seq(Messages)
    }
}

impl Part {
    /// Returns the image or PDF, if the part is one that the user attached.
    pub(super) fn image(&self) -> Option<Image> {
        let is_image =
            self.media_type.as_deref().is_some_and(|kind| kind.starts_with("image/") || kind == Image::PDF);
        let url = self.url.clone().filter(|_| is_image)?;
        Some(Image { url, mime_type: self.media_type.clone() })
    }
}
