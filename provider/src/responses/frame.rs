//! Payloads of events. Lenient, because many servers implement this API only partly.

mod item;
mod response;

use serde::{Deserialize, de::IgnoredAny};

use super::output::{Kind, Sign};
pub(super) use item::{FunctionCall, Item, Message, Reasoning};
pub(crate) use response::usage;
pub(super) use response::{Response, told};

#[derive(Debug, Deserialize)]
#[serde(tag = "type")]
pub(super) enum Frame {
    #[serde(rename = "response.output_item.added")]
    Begun(Placed),
    #[serde(rename = "response.output_item.done")]
    Ended(Placed),
    #[serde(rename = "response.output_text.delta", alias = "response.refusal.delta")]
    Text(Piece),
    #[serde(rename = "response.output_text.done", alias = "response.refusal.done")]
    WholeText(Piece),
    #[serde(rename = "response.reasoning_summary_text.delta")]
    Summary(Piece),
    #[serde(rename = "response.reasoning_text.delta", alias = "response.reasoning.delta")]
    Thought(Piece),
    #[serde(rename = "response.function_call_arguments.delta")]
    Arguments(Piece),
    #[serde(rename = "response.function_call_arguments.done")]
    WholeArguments(Piece),
    #[serde(rename = "response.completed", alias = "response.done")]
    Completed { response: Option<Response> },
    #[serde(rename = "response.incomplete")]
    Incomplete { response: Option<Response> },
    #[serde(rename = "error", alias = "response.failed", alias = "response.cancelled")]
    Failed,
    /// A sign of life, part of a tool run by the provider, or an event of a later API version.
    #[serde(other)]
    Other,
}

/// An output item and its index.
#[derive(Debug, Deserialize)]
pub(super) struct Placed {
    pub(super) output_index: Option<u64>,
    pub(super) item: Item,
}

/// A fragment of an item, or all of it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Piece {
    item_id: Option<String>,
    output_index: Option<u64>,
    content_index: Option<u64>,
    summary_index: Option<u64>,
    delta: Option<String>,
    text: Option<String>,
    refusal: Option<String>,
    arguments: Option<String>,
    pub(super) name: Option<String>,
}

impl Frame {
    pub(super) fn parse(payload: &str) -> Option<Self> {
        /// Errors also have types of their own.
        #[derive(Deserialize)]
        struct Other {
            error: Option<IgnoredAny>,
        }
        match serde_json::from_str(payload).ok()? {
            Self::Failed => None,
            Self::Other => {
                let other: Other = serde_json::from_str(payload).ok()?;
                other.error.is_none().then_some(Self::Other)
            }
            frame => Some(frame),
        }
    }
}

impl Piece {
    pub(super) fn sign(&self, kind: Kind) -> Sign<'_> {
        Sign { kind, id: self.item_id.as_deref(), call_id: None, place: self.output_index }
    }

    /// Takes the text.
    pub(super) fn take(&mut self) -> String {
        let given = [&mut self.delta, &mut self.text, &mut self.refusal, &mut self.arguments];
        given.into_iter().find_map(Option::take).unwrap_or_default()
    }

    /// Returns the index of the part within its item.
    pub(super) fn part(&self) -> u64 {
        self.content_index.or(self.summary_index).unwrap_or(0)
    }
}
