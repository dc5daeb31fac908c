//! Retry settings that can be changed at run time, and their effect on a turn.

mod cache;
mod kept;

pub(crate) use kept::RetryScopes;

use std::sync::Arc;

use everturn_kernel::AfterContent;
use everturn_pacing::{Layers, RetryPolicy, effective};
use everturn_wire::RetrySettings;

use crate::{Error, journal::Configured, schedule};
use cache::Cache;

/// The policy of a turn without run-time settings.
pub(crate) struct Base<'a> {
    /// The route's id, if this is a route.
    pub(crate) route: Option<&'a str>,
    /// Whether the route has its own policy, which takes precedence over the global settings.
    pub(crate) is_own: bool,
    pub(crate) policy: &'a RetryPolicy,
    pub(crate) configured: &'a Arc<Configured>,
    /// What happens after content, for every route.
    pub(crate) after_content: AfterContent,
    /// What else is configured for all turns.
    pub(crate) usual: &'a RetrySettings,
}

/// What a turn begins with.
#[derive(Clone)]
pub(crate) struct Begun {
    pub(crate) policy: RetryPolicy,
    pub(crate) configured: Arc<Configured>,
    pub(crate) after_content: AfterContent,
}

/// Settings to be combined, strongest first.
#[derive(Clone, Copy)]
pub(crate) struct Set<'a> {
    pub(crate) message: Option<&'a RetrySettings>,
    pub(crate) conversation: Option<&'a RetrySettings>,
    pub(crate) global: Option<&'a RetrySettings>,
}

impl Set<'_> {
    fn is_empty(&self) -> bool {
        self.message.is_none() && self.conversation.is_none() && self.global.is_none()
    }

    /// The effective settings on this base.
    pub(crate) fn on(&self, base: &Base<'_>) -> RetrySettings {
        let mut configured = base.policy.settings();
        // These two are configured for all turns, not per route.
        let quota = configured.quota.take();
        let weakest = RetrySettings {
            after_content: Some(word_of(base.after_content)),
            quota,
            enabled: base.usual.enabled,
            fallback_chains: base.usual.fallback_chains.clone(),
            ..if base.is_own { RetrySettings::default() } else { configured.clone() }
        };
        let of = |set: Option<&RetrySettings>| set.cloned().unwrap_or_default();
        let (message, conversation, global) = (of(self.message), of(self.conversation), of(self.global));
        effective(&Layers {
            message: &message,
            conversation: &conversation,
            route: base.is_own.then_some(&configured),
            global: &global,
            configured: &weakest,
        })
    }
}

/// Builds [`Begun`] values; caches the latest ones so that turns share them.
#[derive(Default)]
pub(crate) struct Maker(Cache);

impl Maker {
    /// What a turn on this base begins with. If nothing is set, it is the base itself, shared.
    pub(crate) fn begin(&self, base: &Base<'_>, set: Set<'_>) -> Begun {
        let after_content = base.after_content;
        let usual =
            || Begun { policy: base.policy.clone(), configured: base.configured.clone(), after_content };
        if set.is_empty() {
            return usual();
        }
        let effective = set.on(base);
        // Whether retries are enabled is looked up while the turn runs, unless its own message sets it.
        let auto_retry = set.message.and_then(|message| message.enabled);
        self.0.get_or_make(base.route, &effective, auto_retry, || {
            let changed = base.policy.changed(&effective);
            let after_content = after_content_of(&effective, base.after_content);
            if changed.is_none() && auto_retry.is_none() {
                return Begun { after_content, ..usual() };
            }
            let policy = changed.unwrap_or_else(|| base.policy.clone());
            let saved = schedule::saved(&policy);
            let configured = Configured { schedule: saved, auto_retry, ..(**base.configured).clone() };
            Begun { policy, configured: Arc::new(configured), after_content }
        })
    }
}

/// Checks settings of one scope, with what they come to there.
///
/// # Errors
/// When one is out of its range, or has no effect.
pub(crate) fn check(set: &RetrySettings, effective: &RetrySettings) -> Result<(), Error> {
    set.check()?;
    everturn_pacing::check(set, effective).map_err(Error::from)
}

/// Converts `after_content` to a setting.
fn word_of(after_content: AfterContent) -> everturn_wire::AfterContent {
    match after_content {
        AfterContent::Rewind => everturn_wire::AfterContent::Rewind,
        _ => everturn_wire::AfterContent::Keep,
    }
}

/// What happens after content: as set, else as configured.
fn after_content_of(effective: &RetrySettings, configured: AfterContent) -> AfterContent {
    match effective.after_content {
        Some(everturn_wire::AfterContent::Rewind) => AfterContent::Rewind,
        Some(everturn_wire::AfterContent::Keep) => AfterContent::Keep,
        _ => configured,
    }
}
