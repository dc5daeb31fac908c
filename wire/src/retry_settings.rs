//! Retry settings that can be changed while the server runs.
//!
//! Every field is optional. A field that is not set is inherited from the next weaker scope. From strongest to weakest,
//! the scopes are: message, conversation, route, global settings, configuration.

mod chains;
mod change;
mod check;
mod read;
mod word;

use alloc::boxed::Box;

use serde::{Deserialize, Serialize};

use crate::ConversationId;

pub use chains::FallbackChains;
pub use change::{Change, RetryPatch};
pub use check::InvalidRetrySettings;
pub(crate) use read::{Key, read_change};
pub use word::{AfterContent, OnQuota, RetryPreset, RouteRevert};

/// Retry settings of a scope or a message. Absent fields are inherited.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetrySettings {
    /// The schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<RetryPreset>,
    /// Whether failures are retried automatically. The only setting that also applies to running turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Maximum number of retries of a step, 0 to 1000. For `exponential`, `interactive` and `cycling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 1000)))]
    pub max_retries: Option<u32>,
    /// The first wait, in milliseconds, 1 to 86,400,000 (a day). For `exponential` and `interactive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 86_400_000)))]
    pub base_delay_ms: Option<u64>,
    /// The longest wait, in milliseconds, at most 2,592,000,000 (30 days); 0 = no limit. For `exponential`, which shortens
    /// longer waits to it, and `interactive`, which gives up instead. A negative number is read as 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(max = 2_592_000_000_u64)))]
    pub max_delay_ms: Option<u64>,
    /// Maximum deviation as a fraction of the wait, 0 to 1; 0 = exact. For `exponential` and `interactive`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schemars(range(min = 0.0, max = 1.0)))]
    pub jitter: Option<f64>,
    /// When a turn goes back to the first target of its route. For `interactive` and `cycling`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<RouteRevert>,
    /// What to do about a failure after part of an answer was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_content: Option<AfterContent>,
    /// What to do if a provider asks for a wait beyond the budget, or does not say when a usage limit resets, and no
    /// other target can be asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<OnQuota>,
    /// Models to ask instead of a model that fails. A scope's chains replace those of weaker scopes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_chains: Option<FallbackChains>,
}

impl RetrySettings {
    /// The wire names of all settings.
    pub const NAMES: [&str; 10] = read::SETTINGS;

    /// Whether nothing is set.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Response of `GET` and `PATCH` of `/retry` and `/conversations/:id/retry`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetrySettingsState {
    /// The conversation; absent for the global settings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<ConversationId>,
    /// What is set in this scope.
    pub set: Box<RetrySettings>,
    /// The settings of the next turn in this scope: `set`, and what it inherits. `preset` is absent if an embedder
    /// supplies the schedule; a number is absent if the preset does not use it.
    pub effective: Box<RetrySettings>,
}
