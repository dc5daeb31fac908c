//! Payloads of events. Lenient, because servers of this API agree on little more than names.

use std::{borrow::Cow, fmt, marker::PhantomData};

use everturn_kernel::FinishReason;
use everturn_wire::{Reported, Usage, Value};
use serde::{
    Deserialize, Deserializer,
    de::{IgnoredAny, MapAccess, SeqAccess, Visitor},
};
use serde_json::Map;
use smallvec::SmallVec;

use crate::answer::{note, own_word};

/// Rare fields are boxed, because a frame is moved several times for each delta.
#[derive(Debug, Deserialize)]
pub(super) struct Frame<'p> {
    #[serde(borrow)]
    pub(super) choices: Option<SmallVec<[Choice<'p>; 1]>>,
    pub(super) usage: Option<Box<Value>>,
    #[serde(borrow)]
    model: Option<Content<'p>>,
    #[serde(borrow)]
    system_fingerprint: Option<Content<'p>>,
    #[serde(borrow)]
    service_tier: Option<Content<'p>>,
    error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Choice<'p> {
    #[serde(default)]
    pub(super) index: u64,
    #[serde(borrow)]
    pub(super) delta: Option<Delta<'p>>,
    finish_reason: Option<Box<str>>,
    /// Some servers put the usage here instead of beside the choices.
    pub(super) usage: Option<Box<Value>>,
    error: Option<IgnoredAny>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Delta<'p> {
    #[serde(borrow)]
    pub(super) content: Option<Content<'p>>,
    pub(super) refusal: Option<Box<str>>,
    #[serde(borrow)]
    reasoning_content: Option<Content<'p>>,
    #[serde(borrow)]
    reasoning: Option<Content<'p>>,
    pub(super) reasoning_details: Option<Vec<Map<String, Value>>>,
    pub(super) tool_calls: Option<Vec<CallFragment>>,
    /// The only call of an answer, in the API's original form.
    pub(super) function_call: Option<Box<FunctionFragment>>,
}

#[derive(Debug)]
pub(super) enum Content<'p> {
    Text(Cow<'p, str>),
    Parts(Vec<Part<'p>>),
    Other,
}

/// Implemented by hand, because an untagged enum would buffer every delta first.
impl<'de: 'p, 'p> Deserialize<'de> for Content<'p> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyContent(PhantomData))
    }
}

struct AnyContent<'p>(PhantomData<&'p str>);

impl<'de: 'p, 'p> Visitor<'de> for AnyContent<'p> {
    type Value = Content<'p>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("content in any form")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Content<'p>, E> {
        Ok(Content::Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Content<'p>, E> {
        Ok(Content::Text(Cow::Owned(text.to_owned())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Content<'p>, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = items.next_element()? {
            if let AnyPart::Known(part) = part {
                parts.push(part);
            }
        }
        Ok(Content::Parts(parts))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content<'p>, A::Error> {
        IgnoredAny.visit_map(map).map(|_| Content::Other)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Content<'p>, E> {
        Ok(Content::Other)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Content<'p>, E> {
        Ok(Content::Other)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Content<'p>, E> {
        Ok(Content::Other)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Content<'p>, E> {
        Ok(Content::Other)
    }

    fn visit_unit<E>(self) -> Result<Content<'p>, E> {
        Ok(Content::Other)
    }
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum AnyPart<'p> {
    #[serde(borrow)]
    Known(Part<'p>),
    Other(IgnoredAny),
}

#[derive(Debug, Deserialize)]
pub(super) struct Part<'p> {
    pub(super) text: Option<String>,
    #[serde(borrow)]
    pub(super) thinking: Option<Content<'p>>,
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
    /// A fragment of JSON text; some servers send the complete JSON value.
    pub(super) arguments: Option<Value>,
}

impl<'p> Frame<'p> {
    pub(super) fn parse(payload: &'p str) -> Option<Self> {
        let frame: Self = serde_json::from_str(payload).ok()?;
        let known = frame.choices.is_some() || frame.usage.is_some() || is_harmless(payload);
        (known && !frame.is_error()).then_some(frame)
    }

    /// Notes what the frame says about the answer.
    pub(super) fn report(&self, reported: &mut Reported) {
        note(&mut reported.model, text(&self.model));
        note(&mut reported.system_fingerprint, text(&self.system_fingerprint));
        note(&mut reported.service_tier, text(&self.service_tier));
        if let Some(Value::Number(cost)) = self.usage.as_deref().and_then(|usage| usage.get("cost")) {
            reported.cost = Some(cost.clone());
        }
    }

    fn is_error(&self) -> bool {
        let choices = self.choices.as_deref().unwrap_or_default();
        self.error.is_some()
            || choices
                .iter()
                .any(|choice| choice.error.is_some() || choice.finish_reason.as_deref() == Some("error"))
    }
}

fn text<'f>(field: &'f Option<Content<'_>>) -> Option<&'f str> {
    match field {
        Some(Content::Text(text)) => Some(text),
        _ => None,
    }
}

/// Whether a payload without an answer is harmless, such as a ping, and not an error. Errors have many forms here.
fn is_harmless(payload: &str) -> bool {
    let Ok(Value::Object(fields)) = serde_json::from_str(payload) else { return false };
    let tells = |name: &str| matches!(name, "error" | "errors" | "message" | "detail" | "code" | "status");
    !fields.keys().any(|name| tells(name) || name.ends_with("Exception"))
}

impl Choice<'_> {
    pub(super) fn finish_reason(&self) -> Option<FinishReason> {
        Some(match self.finish_reason.as_deref()? {
            "" => return None,
            "stop" => FinishReason::Stop,
            "tool_calls" | "function_call" => FinishReason::ToolCalls,
            // The second is Mistral's, for a context that is full.
            "length" | "model_length" => FinishReason::Length,
            "content_filter" => FinishReason::ContentFilter,
            other => own_word(other),
        })
    }
}

impl<'p> Delta<'p> {
    /// Takes the reasoning, under any name that servers use.
    pub(super) fn take_reasoning(&mut self) -> Cow<'p, str> {
        let named = [self.reasoning_content.take(), self.reasoning.take()];
        let mut texts = named.into_iter().flatten().map(|content| content.split().0);
        texts.find(|text| !text.is_empty()).unwrap_or_default()
    }
}

impl<'p> Content<'p> {
    /// Returns the visible text and the reasoning.
    pub(super) fn split(self) -> (Cow<'p, str>, String) {
        match self {
            Self::Text(text) => (text, String::new()),
            Self::Parts(parts) => {
                let mut split = (String::new(), String::new());
                for part in parts {
                    split.0.push_str(&part.text.unwrap_or_default());
                    if let Some(thinking) = part.thinking {
                        let (text, deeper) = thinking.split();
                        split.1.extend([&*text, &deeper]);
                    }
                }
                (Cow::Owned(split.0), split.1)
            }
            Self::Other => Default::default(),
        }
    }
}

pub(crate) fn usage(counts: &Value) -> Option<Usage> {
    let count = |path: &str| counts.pointer(path).and_then(Value::as_u64);
    let (input, output) = (count("/prompt_tokens"), count("/completion_tokens"));
    let reasoning = count("/completion_tokens_details/reasoning_tokens");
    // xAI counts reasoning beside the answer, others as a part of it.
    let is_beside = |(input, output): (u64, u64)| {
        let all = input.checked_add(output)?.checked_add(reasoning.filter(|count| *count > 0)?)?;
        (count("/total_tokens") == Some(all)).then_some(all - input)
    };
    let output = input.zip(output).and_then(is_beside).or(output);
    (input.is_some() || output.is_some()).then(|| Usage {
        input_tokens: input.unwrap_or(0),
        output_tokens: output.unwrap_or(0),
        cache_read_tokens: count("/prompt_tokens_details/cached_tokens")
            .or_else(|| count("/prompt_cache_hit_tokens")),
        cache_write_tokens: count("/prompt_tokens_details/cache_write_tokens"),
        reasoning_tokens: reasoning,
    })
}
