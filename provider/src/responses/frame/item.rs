//! Output items, as sent in the events that begin and end them.

use everturn_wire::Value;
use serde::Deserialize;

use crate::responses::output::{Kind, Sign};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::responses) enum Item {
    Message(Message),
    Reasoning(Reasoning),
    FunctionCall(FunctionCall),
    /// A call of a tool run by the provider, or an item of a later API version.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(in crate::responses) struct Message {
    pub(in crate::responses) id: Option<String>,
    /// Whether it is commentary or the answer. Must be sent back.
    pub(in crate::responses) phase: Option<String>,
    pub(in crate::responses) content: Option<Vec<Part>>,
}

#[derive(Debug, Deserialize)]
pub(in crate::responses) struct Reasoning {
    pub(in crate::responses) id: Option<String>,
    pub(in crate::responses) summary: Option<Vec<Value>>,
    pub(in crate::responses) content: Option<Vec<Part>>,
    pub(in crate::responses) encrypted_content: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(in crate::responses) struct FunctionCall {
    pub(in crate::responses) id: Option<String>,
    pub(in crate::responses) call_id: Option<String>,
    pub(in crate::responses) name: Option<String>,
    /// JSON text; some servers send the JSON value.
    arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(in crate::responses) struct Part {
    text: Option<String>,
    refusal: Option<String>,
}

impl Item {
    /// Returns the identifiers of the item; `None` for an item of another kind.
    pub(in crate::responses) fn sign(&self, place: Option<u64>) -> Option<Sign<'_>> {
        let (kind, id, call_id) = match self {
            Self::Message(message) => (Kind::Message, &message.id, None),
            Self::Reasoning(reasoning) => (Kind::Reasoning, &reasoning.id, None),
            Self::FunctionCall(call) => (Kind::Call, &call.id, call.call_id.as_deref()),
            Self::Other => return None,
        };
        Some(Sign { kind, id: id.as_deref(), call_id, place })
    }
}

impl Part {
    pub(in crate::responses) fn into_text(self) -> String {
        self.text.or(self.refusal).unwrap_or_default()
    }
}

impl Reasoning {
    /// Returns the texts of the summary, else those of the reasoning itself.
    pub(in crate::responses) fn texts(&self) -> Vec<String> {
        let of_summary = self.summary.iter().flatten().filter_map(|part| part["text"].as_str());
        let summary: Vec<String> = of_summary.map(str::to_owned).collect();
        if !summary.is_empty() {
            return summary;
        }
        self.content.iter().flatten().filter_map(|part| part.text.clone()).collect()
    }
}

impl FunctionCall {
    pub(in crate::responses) fn arguments(&self) -> String {
        match &self.arguments {
            None | Some(Value::Null) => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(whole) => whole.to_string(),
        }
    }
}
