//! An item of the output, as the events have it that begin and end it.

use everturn_wire::Value;
use serde::Deserialize;

use crate::responses::output::{Kind, Sign};

#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(in crate::responses) enum Item {
    Message(Message),
    Reasoning(Reasoning),
    FunctionCall(FunctionCall),
    /// A call of a tool that the provider runs, or what a later version of the API has.
    #[serde(other)]
    Other,
}

#[derive(Debug, Deserialize)]
pub(in crate::responses) struct Message {
    pub(in crate::responses) id: Option<String>,
    /// Whether it is a comment on the way or the answer; the API wants it back.
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
    /// JSON text; the JSON itself at some servers.
    arguments: Option<Value>,
}

#[derive(Debug, Deserialize)]
pub(in crate::responses) struct Part {
    text: Option<String>,
    refusal: Option<String>,
}

impl Item {
    /// How to find it again; `None` for what is not ours.
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
    /// The texts of its summary; where there is none, those of the reasoning itself.
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
