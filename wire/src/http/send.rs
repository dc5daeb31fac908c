//! `POST /chat`: what a turn is started with.

use alloc::{boxed::Box, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    ApprovalMode, CallerTool, ConversationId, Image, Message, Parameters, RequiredReport, ResponseFormat,
    RetrySettings, ToolChoice,
};

/// Request body of `POST /chat`.
///
/// With any of the fields from `messages` on, or an `Idempotency-Key` header, fields that are not listed here are refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct SendRequest {
    /// The conversation; a new one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// The user message. Not with `messages`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The model, as `provider/model`; the server's default if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Images attached to the message.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::images")]
    pub images: Option<Vec<Image>>,
    /// Reasoning effort, in the provider's terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<String>,
    /// Retry settings of this turn alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<RetrySettings>>,
    /// What happens to calls that need a person's approval; the turn waits for an answer if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalMode>,
    /// The report that the turn must end with; else that of its route, or of the server's configuration, if any.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::report")]
    pub final_report: Option<Box<RequiredReport>>,
    /// Whether to send extension events too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::maybe_flag")]
    pub extensions: Option<bool>,
    /// The whole history, oldest first, in place of `message`. System messages at its start replace the configured system
    /// prompt for this turn. Every tool call has exactly one result, and the last message is of the user or a tool. What the
    /// conversation already has of it stays; what differs is superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Whether the conversation is only for this request: it is in no list and is removed some time after its last turn.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::maybe_flag")]
    pub ephemeral: Option<bool>,
    /// Tools that the caller runs, in place of the server's. A call of one ends the turn and is in its `done` event; the next
    /// request brings the result in its `messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<CallerTool>>,
    /// Sampling temperature. This and what follows is refused if the model's API has no such parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling: the share of probability to sample from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Texts at which the model stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Whether the model may or must call tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The form of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Maximum number of tokens in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether the model may call several tools in one step.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::maybe_flag")]
    pub parallel_tool_calls: Option<bool>,
    /// Seed for sampling, where the API makes a best effort at repeatable answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Penalty for tokens that have occurred at all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens by how often they have occurred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
}

impl SendRequest {
    /// The fields that go with the message alone: a request without any other may have fields that are not listed.
    pub const PLAIN: [&'static str; 9] = [
        "conversationId",
        "message",
        "model",
        "images",
        "reasoningEffort",
        "retry",
        "approvals",
        "finalReport",
        "extensions",
    ];

    /// The fields that make a request more than a message.
    pub const SCOPED: [&'static str; 13] = [
        "messages",
        "ephemeral",
        "tools",
        "temperature",
        "topP",
        "stop",
        "toolChoice",
        "responseFormat",
        "maxOutputTokens",
        "parallelToolCalls",
        "seed",
        "presencePenalty",
        "frequencyPenalty",
    ];

    /// What is passed on to the model's API.
    pub fn parameters(&self) -> Parameters {
        Parameters {
            temperature: self.temperature,
            top_p: self.top_p,
            stop: self.stop.clone().unwrap_or_default(),
            tool_choice: self.tool_choice.clone(),
            response_format: self.response_format.clone(),
            max_output_tokens: self.max_output_tokens,
            parallel_tool_calls: self.parallel_tool_calls,
            seed: self.seed,
            presence_penalty: self.presence_penalty,
            frequency_penalty: self.frequency_penalty,
        }
    }
}
