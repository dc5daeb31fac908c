//! Reads `retry.set`, whose settings are next to its conversation. Serde's `flatten` would first collect all unknown
//! fields.

use alloc::boxed::Box;
use core::fmt;

use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, Visitor},
};

use super::Command;
use crate::{
    ConversationId, RetryPatch,
    retry_settings::{Key, read_change},
};

/// The fields of `retry.set`.
pub(super) struct RetrySet {
    conversation_id: Option<ConversationId>,
    settings: Box<RetryPatch>,
}

impl From<RetrySet> for Command {
    fn from(RetrySet { conversation_id, settings }: RetrySet) -> Self {
        Self::RetrySet { conversation_id, settings }
    }
}

impl<'de> Deserialize<'de> for RetrySet {
    fn deserialize<D: Deserializer<'de>>(fields: D) -> Result<Self, D::Error> {
        fields.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = RetrySet;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("retry settings")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RetrySet, A::Error> {
        let mut read = RetrySet { conversation_id: None, settings: Box::default() };
        while let Some(key) = map.next_key::<Key>()? {
            match key {
                Key::Conversation => read.conversation_id = map.next_value()?,
                Key::Setting(name) => read_change(&mut read.settings, name, &mut map)?,
                Key::Unknown => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(read)
    }
}
