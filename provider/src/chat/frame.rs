//! One event's payload. Lenient: servers of this API agree on little more than the names.

use std::fmt;

use everturn_kernel::FinishReason;
use everturn_wire::{Usage, Value};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Map;

use crate::answer::own_word;

#[derive(Debug, Deserialize)]
pub(super) struct Frame {
    pub(super) choices: Option<Vec<Choice>>,
    pub(super) usage: Option<Value>,
    error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice {
    #[serde(default)]
    pub(super) index: u64,
    pub(super) delta: Option<Delta>,
    finish_reason: Option<String>,
    /// Here instead of beside the choices, at some servers.
    pub(super) usage: Option<Value>,
    error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta {
    pub(super) content: Option<Content>,
    pub(super) refusal: Option<String>,
    reasoning_content: Option<Content>,
    reasoning: Option<Content>,
    pub(super) reasoning_details: Option<Vec<Map<String, Value>>>,
    pub(super) tool_calls: Option<Vec<CallFragment>>,
    /// The only call of an answer, in the API's first form of it.
    pub(super) function_call: Option<FunctionFragment>,
}

#[derive(Debug)]
pub(super) enum Content {
    Text(String),
    Parts(Vec<Part>),
    Other,
}

/// By hand: an untagged enum would read every delta into a buffer first.
impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyContent)
    }
}

struct AnyContent;

impl<'de> Visitor<'de> for AnyContent {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("content in any form")
    }

    fn visit_str<E>(self, text: &str) -> Result<Content, E> {
        Ok(Content::Text(text.to_owned()))
    }

    fn visit_string<E>(self, text: String) -> Result<Content, E> {
        Ok(Content::Text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = items.next_element()? {
            if let AnyPart::Known(part) = part {
                parts.push(part);
            }
        }
        Ok(Content::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content, A::Error> {
        IgnoredAny.visit_map(map).map(|_| Content::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content, E> {
        Ok(Content::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content, E> {
        Ok(Content::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content, E> {
        Ok(Content::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content, E> {
        Ok(Content::Other)
    }

    fn visit_unit<E>(self) -> Result<Content, E> {
        Ok(Content::Other)
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AnyPart {
    Known(Part),
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
pub(super) struct Part {
    pub(super) text: Option<String>,
    pub(super) thinking: Option<Content>,
}

#[derive(Debug, Deserialize)]
pub(super) struct CallFragment {
    pub(super) index: Option<u64>,
    pub(super) id: Option<String>,
    pub(super) function: Option<FunctionFragment>,
}

#[derive(Debug, Default, Deserialize)]
pub(super) struct FunctionFragment {
    pub(super) name: Option<String>,
    /// A piece of JSON text; the whole as JSON at some servers.
    pub(super) arguments: Option<Value>,
}

impl Frame {
    pub(super) fn parse(payload: &str) -> Option<Self> {
        let frame: Self = serde_json::from_str(payload).ok()?;
        let known = frame.choices.is_some() || frame.usage.is_some() || is_harmless(payload);
        (known && !frame.is_error()).then_some(frame)
    }

    fn is_error(&self) -> bool {
        let choices = self.choices.as_deref().unwrap_or_default();
        self.error.is_some()
            || choices
                .iter()
                .any(|choice| choice.error.is_some() || choice.finish_reason.as_deref() == Some("error"))
    }
}

/// Whether a payload without an answer in it is no error either, such as a ping. Errors come in many forms here.
fn is_harmless(payload: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(payload) else { return false };
    let tells = |name: &str| matches!(name, "error" | "errors" | "message" | "detail" | "code" | "status");
    !fields.keys().any(|name| tells(name) || name.ends_with("Exception"))
}

impl Choice {
    pub(super) fn finish_reason(&self) -> Option<FinishReason> {
        Some(match self.finish_reason.as_deref()? {
            "" => return None,
            "stop" => FinishReason::Stop,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            "length" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            other => own_word(other),
        })
    }
}

impl Delta {
    /// Its reasoning, under whichever name the server has for it.
    pub(super) fn take_reasoning(&mut self) -> String {
        let named = [self.reasoning_content.take(), self.reasoning.take()];
        let mut texts = named.into_iter().flatten().map(|content| content.split().0);
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    }
}

impl Content {
    /// Its visible text and its reasoning.
    pub(super) fn split(self) -> (String, String) {
        match self {
            Self::Text(text) => (text, String::new()),
            Self::Parts(parts) => {
                let mut split = (String::new(), String::new());
                for part in parts {
                    split.0.push_str(&part.text.unwrap_or_default());
                    if let Some(thinking) = part.thinking {
                        let (text, deeper) = thinking.split();
                        split.1.extend([text, deeper]);
                    }
                }
                split
            }
            Self::Other => Default::default(),
        }
    }
}

pub(super) fn usage(counts: &Value) -> Option<Usage> {
    let count = |path: &str| counts.pointer(path).and_then(Value::as_u64);
    let (input, output) = (count("/prompt_tokens"), count("/completion_tokens"));
    (input.is_some() || output.is_some()).then(|| Usage {
        input_tokens: input.unwrap_or(0),
        output_tokens: output.unwrap_or(0),
        cache_read_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens")),
        cache_write_tokens: count("/prompt_tokens_details/cache_write_tokens"),
    })
}
