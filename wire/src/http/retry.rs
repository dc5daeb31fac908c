//! Request bodies of the calls that repeat a turn or skip a wait.

use alloc::{boxed::Box, string::String};

use serde::{Deserialize, Serialize};

use crate::{ApprovalMode, RetrySettings, TurnId};

/// Request body of `POST /conversations/:id/retry`. Names a turn by `turnId`, a user message by `seq`, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryRequest {
    /// The conversation's last turn. The request is refused if another turn is the last by now. Without `seq`, this
    /// turn is repeated; it must have ended in an error or been stopped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The `seq` of a user message to answer again. Everything after it is superseded.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::bound::maybe_number"
    )]
    pub seq: Option<u64>,
    /// With `seq`: new text for that message, which is superseded too; its images are kept. 1 byte to 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The model, as `provider/model`, or the route, as `route/name`; the conversation's last one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Retry settings for the new turn only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<RetrySettings>>,
    /// How calls that need a person's approval are treated; if absent, as in the turn that is repeated or that has the
    /// message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalMode>,
}

/// Request body of `POST /conversations/:id/retry/now`. Optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryNowRequest {
    /// The model, as `provider/model`, or the route, as `route/name`, with which the turn continues; if absent, the
    /// schedule decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
