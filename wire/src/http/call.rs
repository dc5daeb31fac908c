//! Calls that are passed through.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::Category;

/// Response of `GET /calls`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Calls {
    /// The calls in progress, and those whose answer nobody has taken yet; the oldest first.
    pub calls: Vec<CallInfo>,
}

/// A call that is passed through. Never has its content, nor a credential.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallInfo {
    /// Its id.
    pub id: String,
    /// Whose call it is, for the administrator; absent if it is the administrator's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub caller: Option<String>,
    /// The caller's program; absent if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    /// The caller's name of its session; absent if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The model, as the caller named it.
    pub model: String,
    /// The target that is being asked, or will be asked next.
    pub target: String,
    /// What it is doing.
    pub phase: CallPhase,
    /// When it began, in epoch milliseconds.
    pub started_at: u64,
    /// When its wait ends, in epoch milliseconds; absent if it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_at: Option<u64>,
    /// Number of retries so far.
    pub retries: u32,
    /// Sum of the waits so far, in milliseconds.
    pub waited_ms: u64,
    /// The failure that it waits for, for people; absent if it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// The failure's category; absent if it does not wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub category: Option<Category>,
    /// True if it waits behind other calls, or for a limit of its caller: the wait may end before `nextAt`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<bool>,
    /// Number of clients that wait for the answer, or receive it.
    pub listeners: u32,
}

/// What a call is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CallPhase {
    /// A provider is being asked, and has said nothing yet.
    Asking,
    /// It waits before the next attempt.
    Waiting,
    /// The answer is being passed on.
    Answering,
    /// It is over; its answer waits for a repeated request.
    Kept,
    /// It is over, and no longer listed. Only in `call.changed`.
    Ended,
    /// From a newer version.
    #[cfg_attr(feature = "schema", schemars(skip))]
    #[serde(other)]
    Unknown,
}

/// Response of `POST /calls/:id/retry-now` and `POST /calls/:id/give-up`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallOrdered {
    /// The call.
    pub call_id: String,
}
