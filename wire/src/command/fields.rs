//! The fields of each command, read once its type is known.

use alloc::{boxed::Box, string::String, vec::Vec};

use serde::{
    Deserialize, Deserializer,
    de::{self, DeserializeSeed, EnumAccess, IntoDeserializer as _, VariantAccess, Visitor},
    forward_to_deserialize_any,
};

use super::{Command, retry_set::RetrySet};
use crate::{
    ApprovalMode, ApprovalScope, ConversationId, Image, ModelSettings, Priority, QuestionAction,
    RequiredReport, RetrySettings, StepId, TurnId, Value, Verdict,
};

/// The commands, as serde reads them once their type is known. For an internally tagged enum, serde first reads generic
/// values, and an untrusted frame could contain as many of those as it has bytes.
#[derive(Deserialize)]
#[serde(remote = "Command", rename_all_fields = "camelCase")]
enum Fields {
    #[serde(rename = "chat.send")]
    ChatSend {
        #[serde(default)]
        conversation_id: Option<ConversationId>,
        message: String,
        #[serde(default)]
        model: Option<String>,
        #[serde(default, deserialize_with = "crate::bound::images")]
        images: Option<Vec<Image>>,
        #[serde(default)]
        reasoning_effort: Option<String>,
        #[serde(default)]
        retry: Option<Box<RetrySettings>>,
        #[serde(default)]
        approvals: Option<ApprovalMode>,
        #[serde(default, deserialize_with = "crate::bound::report")]
        final_report: Option<Box<RequiredReport>>,
        #[serde(default)]
        model_settings: Option<Box<ModelSettings>>,
        priority: Option<Priority>,
        #[serde(default, deserialize_with = "crate::bound::maybe_flag")]
        extensions: Option<bool>,
    },
    #[serde(rename = "chat.subscribe")]
    ChatSubscribe {
        conversation_id: ConversationId,
        #[serde(default)]
        cursor: Option<String>,
        #[serde(default, deserialize_with = "crate::bound::maybe_flag")]
        extensions: Option<bool>,
    },
    #[serde(rename = "chat.unsubscribe")]
    ChatUnsubscribe { conversation_id: ConversationId },
    #[serde(rename = "chat.queue")]
    ChatQueue {
        conversation_id: ConversationId,
        text: String,
        #[serde(default)]
        message_id: Option<String>,
    },
    #[serde(rename = "chat.queue.cancel")]
    ChatQueueCancel { conversation_id: ConversationId, message_id: String },
    #[serde(rename = "chat.stop")]
    ChatStop { conversation_id: ConversationId },
    #[serde(rename = "chat.retry")]
    ChatRetry {
        conversation_id: ConversationId,
        #[serde(default)]
        turn_id: Option<TurnId>,
        #[serde(default, deserialize_with = "crate::bound::maybe_number")]
        seq: Option<u64>,
        #[serde(default)]
        message: Option<String>,
        #[serde(default)]
        model: Option<String>,
        #[serde(default)]
        retry: Option<Box<RetrySettings>>,
        #[serde(default)]
        approvals: Option<ApprovalMode>,
        #[serde(default, deserialize_with = "crate::bound::maybe_flag")]
        extensions: Option<bool>,
    },
    #[serde(rename = "approval.answer")]
    ApprovalAnswer {
        conversation_id: ConversationId,
        turn_id: TurnId,
        step_id: StepId,
        tool_call_id: String,
        verdict: Verdict,
        #[serde(default)]
        scope: Option<ApprovalScope>,
        #[serde(default)]
        reason: Option<String>,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        via: Option<String>,
    },
    #[serde(rename = "question.answer")]
    QuestionAnswer {
        conversation_id: ConversationId,
        question_id: String,
        action: QuestionAction,
        #[serde(default, deserialize_with = "crate::bound::answer")]
        content: Option<Value>,
        #[serde(default)]
        name: Option<String>,
        #[serde(default)]
        via: Option<String>,
    },
    #[serde(rename = "retry.abort")]
    RetryAbort { conversation_id: ConversationId },
    #[serde(rename = "retry.now")]
    RetryNow {
        conversation_id: ConversationId,
        #[serde(default)]
        model: Option<String>,
    },
}

/// Reads the fields of a command of this type. Ignores unknown fields.
pub(super) fn read(kind: &str, frame: &str) -> Result<Command, serde_json::Error> {
    let mut fields = serde_json::Deserializer::from_str(frame);
    let command = match kind {
        "retry.set" => RetrySet::deserialize(&mut fields)?.into(),
        _ => Fields::deserialize(OfKind { kind, fields: &mut fields })?,
    };
    fields.end()?;
    Ok(command)
}

/// A command whose type is known and whose fields have not been read yet.
struct OfKind<'a, 'de> {
    kind: &'a str,
    fields: &'a mut serde_json::Deserializer<serde_json::de::StrRead<'de>>,
}

impl<'de> Deserializer<'de> for OfKind<'_, 'de> {
    type Error = serde_json::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Self::Error> {
        visitor.visit_enum(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

impl<'de> EnumAccess<'de> for OfKind<'_, 'de> {
    type Error = serde_json::Error;
    type Variant = Self;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Self), Self::Error> {
        let kind: de::value::StrDeserializer<'_, Self::Error> = self.kind.into_deserializer();
        Ok((seed.deserialize(kind)?, self))
    }
}

impl<'de> VariantAccess<'de> for OfKind<'_, 'de> {
    type Error = serde_json::Error;

    fn unit_variant(self) -> Result<(), Self::Error> {
        Err(de::Error::custom(NO_FIELDS))
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, _: T) -> Result<T::Value, Self::Error> {
        Err(de::Error::custom(NO_FIELDS))
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, _: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom(NO_FIELDS))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.fields.deserialize_struct("Command", fields, visitor)
    }
}

const NO_FIELDS: &str = "every command has fields with names";
