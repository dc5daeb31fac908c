//! The request body of `POST /chat`.

use alloc::{boxed::Box, string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{
    ApprovalMode, CallerTool, ConversationId, Image, Message, ModelSettings, Parameters, Priority,
    RequiredReport, ResponseFormat, RetrySettings, ToolChoice,
};

/// Request body of `POST /chat`.
///
/// If it has any field from `messages` on, or an `Idempotency-Key` header, unknown fields are refused.
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
    /// Retry settings for this turn only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<RetrySettings>>,
    /// How calls that need a person's approval are treated; if absent, the turn waits for an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalMode>,
    /// The report that the turn must end with; if absent, that of its route or of the server's configuration, if any.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::report")]
    pub final_report: Option<Box<RequiredReport>>,
    /// What the conversation sets for its model from this message on, in place of what it set before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_settings: Option<Box<ModelSettings>>,
    /// Whether the turn gives way to others when calls have to wait; if absent, it does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
    /// Whether to send extension events too.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::maybe_flag")]
    pub extensions: Option<bool>,
    /// The whole history, oldest first, in place of `message`. System messages at its start replace the configured
    /// system prompt for this turn. Every tool call has exactly one result, and the last message is from the user or a
    /// tool. Messages that the conversation already has are kept; those that differ are superseded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message>>,
    /// Whether the conversation exists only for this request: it is not listed, and is removed some time after its last
    /// turn.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::maybe_flag")]
    pub ephemeral: Option<bool>,
    /// Tools that the caller runs, replacing the server's. A call of one ends the turn and is in its `done` event; the
    /// next request has the result in its `messages`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<CallerTool>>,
    /// Sampling temperature. This and all fields below are refused if the model's API has no such parameter.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Nucleus sampling: the probability mass to sample from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    /// Sequences at which the model stops.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop: Option<Vec<String>>,
    /// Whether the model may or must call tools.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// The format of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// Maximum number of tokens in an answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// Whether the model may call several tools in one step.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "crate::bound::maybe_flag")]
    pub parallel_tool_calls: Option<bool>,
    /// Seed for sampling, if the API attempts reproducible answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// Penalty for tokens that have occurred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence_penalty: Option<f64>,
    /// Penalty for tokens according to how often they have occurred.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frequency_penalty: Option<f64>,
}

impl SendRequest {
    /// The fields of a plain message. A request with only these may also have unknown fields.
    pub const PLAIN: [&'static str; 11] = [
        "conversationId",
        "message",
        "model",
        "images",
        "reasoningEffort",
        "retry",
        "approvals",
        "finalReport",
        "modelSettings",
        "priority",
        "extensions",
    ];

    /// The fields that make a request more than a plain message.
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

    /// Returns the parameters to pass on to the model's API.
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
