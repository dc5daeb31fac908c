//! Approvals: tool calls that wait for a person, and the person's answers.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::{ConversationId, StepId, TurnId, Value};

/// A tool call that waits for a person's approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalRequest {
    /// The turn.
    pub turn_id: TurnId,
    /// The step that made the call.
    pub step_id: StepId,
    /// The id of the call, unique within its step.
    pub tool_call_id: String,
    /// The tool's name.
    pub tool_name: String,
    /// The arguments: any JSON.
    pub input: Value,
    /// Why approval is needed, for display.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// When the call is denied if nobody answers, in epoch milliseconds; absent = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<u64>,
}

/// Request body of `POST /conversations/:id/approvals`: a person's answer to a request for approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ApprovalAnswer {
    /// The turn.
    pub turn_id: TurnId,
    /// The step that made the call.
    pub step_id: StepId,
    /// The id of the call.
    pub tool_call_id: String,
    /// `allowed` or `denied`; any other word is refused.
    pub verdict: Verdict,
    /// What is allowed; only this call if absent. Ignored for a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ApprovalScope>,
    /// The reason, at most 4,096 bytes. The model receives the reason for a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The person's name, shown to later readers of the conversation, at most 200 bytes. Not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client that the person answers with, such as `page` or `terminal`, at most 200 bytes; the transport if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
}

/// The outcome of an approval request. Only `allowed` lets the tool run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Verdict {
    /// The tool may run.
    Allowed,
    /// The tool may not run.
    Denied,
    /// No decision: the reviewer failed.
    Failed,
    /// No decision in time.
    TimedOut,
    /// The turn ended first.
    Cancelled,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// A decision on whether a tool call may run. Kept with the call's result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Decision {
    /// Who decided.
    pub by: Decider,
    /// The outcome. `timed-out` for a person: nobody answered in time.
    pub verdict: Verdict,
    /// What a person allowed; only this call if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scope: Option<ApprovalScope>,
    /// The person's name, as given by their client. Not verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The client that the person answered with, such as `page` or `terminal`; `http` or `websocket` if it did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<String>,
    /// A person's reason, a reviewer's rationale, or why a review reached no decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The reviewer's rating of the risk, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub risk_level: Option<String>,
    /// The reviewer's rating of how far the user asked for the call, in its own words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_authorization: Option<String>,
}

impl Decision {
    /// Creates a decision without details.
    pub fn new(by: Decider, verdict: Verdict) -> Self {
        Self {
            by,
            verdict,
            scope: None,
            name: None,
            via: None,
            reason: None,
            risk_level: None,
            user_authorization: None,
        }
    }
}

/// Who decides whether a tool call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Decider {
    /// A person who was asked.
    Person,
    /// A review.
    Review,
    /// The policy of the tool, or of the turn's message.
    Rule,
    /// An earlier answer of a person, who allowed the tool for the whole conversation.
    Grant,
    /// A value from a newer version. The original is not kept; it serializes as `unknown`.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// What a person allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalScope {
    /// This call.
    #[default]
    Call,
    /// Every call of this tool in the conversation from now on, until revoked. Never overrides a policy that denies.
    Conversation,
    /// A value from a newer version. Refused.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// What happens to the calls of a turn that need a person's approval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ApprovalMode {
    /// The turn waits for an answer.
    #[default]
    Ask,
    /// They are denied at once, because nobody is there to answer.
    Deny,
    /// A value from a newer version. Refused.
    #[serde(other)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    Unknown,
}

/// Response of `POST /conversations/:id/approvals`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Answered {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether the call was waiting for this answer. A late or second answer changes nothing.
    pub answered: bool,
}

/// Response of `GET /conversations/:id/approvals`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Approvals {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// The calls that wait for an answer, in call order.
    pub pending: Vec<ApprovalRequest>,
    /// The tools that were allowed for the whole conversation, by name.
    pub allowed_tools: Vec<String>,
}

/// Response of `DELETE /conversations/:id/approvals/tools/:tool`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Revoked {
    /// The conversation.
    pub conversation_id: ConversationId,
    /// Whether the tool was allowed for the whole conversation until now.
    pub revoked: bool,
}
