//! Questions: what a running tool asks a person, and the person's answers.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::{StepId, Value};

/// A question of a running tool to a person. Its call goes on when somebody answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// The id of the question.
    pub question_id: String,
    /// The step that made the call.
    pub step_id: StepId,
    /// The id of the call.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// Who asks: the name of the tool's source, such as an MCP server.
    pub asker: String,
    /// What is asked for.
    pub kind: QuestionKind,
    /// What the asker says, as plain text.
    pub message: String,
    /// The fields of a form, in the order in which they are shown; at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<QuestionField>,
    /// The page to open, for the kind `url`. Must be opened by a person, never by a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
}

/// What a question asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum QuestionKind {
    /// The values of a form.
    Form,
    /// Whether the person opens a page, which asks for the rest.
    Url,
    /// A login at the asker. The question ends when somebody has logged in.
    Login,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// A field of a form.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuestionField {
    /// The name of the field in the answer.
    pub name: String,
    /// The type of its value.
    pub kind: FieldKind,
    /// Its label; the name if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// An explanation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// True if the answer must have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required: Option<bool>,
    /// The format of a text: `email`, `uri`, `date` or `date-time`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub format: Option<String>,
    /// The minimum: of a number, of the length of a text in characters, or of the number of choices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Number>,
    /// The maximum, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub maximum: Option<Number>,
    /// What can be chosen; at most 100.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<FieldOption>,
    /// What is filled in before: any JSON.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
}

/// The type of a field's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum FieldKind {
    /// A string.
    Text,
    /// A number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
    /// The value of one of the options, as a string.
    Choice,
    /// The values of any number of the options, as an array of strings.
    Choices,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// An option of a field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct FieldOption {
    /// Its value in the answer.
    pub value: String,
    /// Its label; the value if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
}

/// Request body of `POST /conversations/:id/questions`: a person's answer to a question.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer {
    /// The question.
    pub question_id: String,
    /// `accept`, `decline` or `cancel`; any other word is refused.
    pub action: QuestionAction,
    /// The values of the form's fields by name, as an object of at most 64 KiB. Only with `accept`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// The person's name, shown to later readers of the conversation, at most 200 bytes. Not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client that the person answers with, such as `page` or `terminal`, at most 200 bytes; the transport if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

impl QuestionAnswer {
    /// Maximum size of the content, in bytes of JSON.
    pub const MAX_CONTENT: usize = 64 << 10;
}

/// How a question ended, without what was asked and what was answered. Kept with the result of its call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SettledQuestion {
    /// The question.
    pub question_id: String,
    /// Who asked.
    pub asker: String,
    /// What was asked for.
    pub kind: QuestionKind,
    /// The outcome.
    pub outcome: QuestionOutcome,
    /// The person's name, as given by their client. Not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client that the person answered with, such as `page` or `terminal`; `http` or `websocket` if it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// What a person does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum QuestionAction {
    /// Answers it.
    Accept,
    /// Declines to answer. The call goes on without.
    Decline,
    /// Dismisses it without a decision.
    Cancel,
    /// A value from a newer version. Refused.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// How a question ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum QuestionOutcome {
    /// A person answered it; of a login: somebody has logged in.
    Accepted,
    /// A person declined.
    Declined,
    /// A person dismissed it.
    Cancelled,
    /// The asker does not wait any more.
    Withdrawn,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}
