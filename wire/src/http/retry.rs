//! Request bodies of the calls that ask again.

use alloc::{boxed::Box, string::String};

use serde::{Deserialize, Serialize};

use crate::{ApprovalMode, RetrySettings, TurnId};

/// Request body of `POST /conversations/:id/retry`. It names a turn by `turnId`, a user message by `seq`, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryRequest {
    /// The conversation's last turn; the request is refused if another one is the last by now. Without `seq` it is
    /// repeated, and must have ended in an error or by a stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The `seq` of a user message, which is answered again: what follows it is superseded.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "crate::bound::maybe_number"
    )]
    pub seq: Option<u64>,
    /// With `seq`: a new text for that message, which is superseded too; its images are kept. 1 byte to 1 MiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The model, as `provider/model`, or the route, as `route/name`; the conversation's last one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Retry settings of the new turn alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Box<RetrySettings>>,
    /// What happens to calls that need a person's approval; as in the turn that is repeated, or that has the message, if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvals: Option<ApprovalMode>,
}

/// Request body of `POST /conversations/:id/retry/now`; may be absent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryNowRequest {
    /// The model, as `provider/model`, or the route, as `route/name`, with which the turn continues; as decided by its
    /// schedule if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}
