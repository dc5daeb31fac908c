//! Changes of settings: a field is set, reset, or left unchanged.

use serde::Serialize;

use super::{AfterContent, FallbackChains, OnQuota, RetryPreset, RetrySettings, RouteRevert};

/// A change of one setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Change<T> {
    /// Sets this value.
    Set(T),
    /// Resets the setting, so that it is inherited; null on the wire.
    Inherit,
}

impl<T> From<Option<T>> for Change<T> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Inherit, Self::Set)
    }
}

impl<T> Change<T> {
    fn value(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Inherit => None,
        }
    }
}

#[cfg(feature = "schema")]
impl<T: schemars::JsonSchema> schemars::JsonSchema for Change<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> alloc::borrow::Cow<'static, str> {
        alloc::format!("Change_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "oneOf": [generator.subschema_for::<T>(), { "type": "null" }] })
    }
}

/// Request body of `PATCH /retry` and `PATCH /conversations/:id/retry`. Null resets a field, so that it is inherited;
/// an absent field is unchanged. Fields and ranges are those of `RetrySettings`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RetryPatch {
    /// The schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<Change<RetryPreset>>,
    /// Whether failures are retried automatically.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enabled: Option<Change<bool>>,
    /// Maximum number of retries of a step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_retries: Option<Change<u32>>,
    /// The first wait, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_delay_ms: Option<Change<u64>>,
    /// The longest wait, in milliseconds; 0 = no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_delay_ms: Option<Change<u64>>,
    /// Maximum deviation as a fraction of the wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter: Option<Change<f64>>,
    /// When a turn goes back to the first target of its route.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revert: Option<Change<RouteRevert>>,
    /// What to do about a failure after part of an answer was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_content: Option<Change<AfterContent>>,
    /// What to do at a usage limit that ends after the longest wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quota: Option<Change<OnQuota>>,
    /// Models to ask instead of a model that fails: all chains of this scope.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback_chains: Option<Change<FallbackChains>>,
}

impl RetryPatch {
    /// Creates a patch that only turns automatic retries on or off.
    pub fn enabled(enabled: bool) -> Self {
        Self { enabled: Some(Change::Set(enabled)), ..Self::default() }
    }

    /// Returns the settings after this change.
    #[must_use]
    pub fn applied_to(&self, old: &RetrySettings) -> RetrySettings {
        fn changed<T: Clone>(old: &Option<T>, change: &Option<Change<T>>) -> Option<T> {
            change.clone().map_or_else(|| old.clone(), Change::value)
        }
        RetrySettings {
            preset: changed(&old.preset, &self.preset),
            enabled: changed(&old.enabled, &self.enabled),
            max_retries: changed(&old.max_retries, &self.max_retries),
            base_delay_ms: changed(&old.base_delay_ms, &self.base_delay_ms),
            max_delay_ms: changed(&old.max_delay_ms, &self.max_delay_ms),
            jitter: changed(&old.jitter, &self.jitter),
            revert: changed(&old.revert, &self.revert),
            after_content: changed(&old.after_content, &self.after_content),
            quota: changed(&old.quota, &self.quota),
            fallback_chains: changed(&old.fallback_chains, &self.fallback_chains),
        }
    }
}
