//! Callers, as administrators see them.

use alloc::{string::String, vec::Vec};

use serde::{Deserialize, Serialize};

use crate::Priority;

/// Response of `GET /callers`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallerList {
    /// All of them, also those that were revoked.
    pub callers: Vec<CallerInfo>,
}

/// A caller.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallerInfo {
    /// Its name.
    pub name: String,
    /// What it may use: `chat`, `calls`, `proxy`, `admin`.
    pub scopes: Vec<String>,
    /// Whether its token counts: `valid`, `expired` or `revoked`.
    pub status: String,
    /// When its token expires; absent = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// Whether it belongs to the configuration, where alone it can be changed.
    pub configured: bool,
    /// What it may use of providers.
    #[serde(flatten)]
    pub limits: CallerLimits,
}

/// What a caller may use of providers, and the body of `PUT /callers/{name}/limits`. Absent = no limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CallerLimits {
    /// Calls to models that begin in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests_per_minute: Option<u64>,
    /// Tokens of these calls in a minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_minute: Option<u64>,
    /// Tokens of these calls in a day, in UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_per_day: Option<u64>,
    /// Calls to models at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parallel: Option<u64>,
    /// What these calls cost in a day, in the currency of the configured prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_per_day: Option<f64>,
    /// Patterns of the models and routes that it may use; absent = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<String>,
    /// The highest priority of its calls; absent = interactive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priority>,
}

/// Body of `POST /callers`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewCaller {
    /// Its name: 1 to 32 of the characters a-z 0-9 . _ -
    pub name: String,
    /// What it may use; absent = `chat` and `calls`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// When its token expires: a day, at whose end in UTC, or a moment; absent = never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// What it may use of providers.
    #[serde(flatten)]
    pub limits: CallerLimits,
}

/// Body of `POST /callers/{name}/rotate`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct NewToken {
    /// When the new token expires, as in [`NewCaller`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// A token that was made. It is told only now.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct MadeToken {
    /// The token.
    pub token: String,
    /// Whose it is.
    pub caller: CallerInfo,
}

/// Response of `GET /audit`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditLog {
    /// Newest first.
    pub entries: Vec<AuditEntry>,
}

/// One thing that was done, or refused.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuditEntry {
    /// Increases from entry to entry: when it was written, in microseconds since 1970.
    pub id: i64,
    /// The same as a moment, in UTC.
    pub at: String,
    /// The name of a caller; absent = the administrator, or nobody if a sign-in was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// A route, such as `DELETE /providers/{name}`, a command, or `sign-in`.
    pub action: String,
    /// What it was done to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub object: Option<String>,
    /// `done`, the HTTP status of a failure, `client left`, or `asked` for a command of a WebSocket.
    pub outcome: String,
    /// Why a sign-in was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The address that it came from; absent = a command on the server's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// How many refusals before this entry were left out, because there were too many.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}
