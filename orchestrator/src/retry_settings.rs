//! Retry settings that can be changed at run time, and what they come to for a turn.

mod cache;
mod kept;
mod made;
mod resolve;

pub(crate) use kept::RetryScopes;
pub(crate) use resolve::{Layers, effective};

use std::sync::Arc;

use everturn_kernel::Schedule;
use everturn_wire::RetrySettings;

use crate::{Error, journal::Configured};
use cache::Cache;

type SharedSchedule = Arc<dyn Schedule + Send + Sync>;

/// The schedule that a turn would have if nothing were set at run time.
pub(crate) struct Base<'a> {
    /// The id of the route, if it is one.
    pub(crate) route: Option<&'a str>,
    /// The route's schedule is its own: it goes before the global settings.
    pub(crate) is_own: bool,
    pub(crate) schedule: &'a SharedSchedule,
    pub(crate) configured: &'a Arc<Configured>,
}

/// What a turn begins with.
#[derive(Clone)]
pub(crate) struct Begun {
    pub(crate) schedule: SharedSchedule,
    pub(crate) configured: Arc<Configured>,
}

/// Settings that are to be combined, the strongest first.
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

    /// What they come to on that base.
    pub(crate) fn on(&self, base: &Base<'_>) -> RetrySettings {
        let configured = made::settings_of(&**base.schedule);
        let none = RetrySettings::default();
        let of = |set: Option<&RetrySettings>| set.cloned().unwrap_or_default();
        let (message, conversation, global) = (of(self.message), of(self.conversation), of(self.global));
        effective(&Layers {
            message: &message,
            conversation: &conversation,
            route: base.is_own.then_some(&configured),
            global: &global,
            configured: if base.is_own { &none } else { &configured },
        })
    }
}

/// Makes what turns begin with; remembers the last few, so that turns share them.
#[derive(Default)]
pub(crate) struct Maker(Cache);

impl Maker {
    /// What a turn on that base begins with. Where nothing is set it is the base itself, shared.
    pub(crate) fn begin(&self, base: &Base<'_>, set: Set<'_>) -> Begun {
        let usual = || Begun { schedule: base.schedule.clone(), configured: base.configured.clone() };
        if set.is_empty() {
            return usual();
        }
        let effective = set.on(base);
        // Whether it is on is looked up while the turn runs, unless its own message says it.
        let auto_retry = set.message.and_then(|message| message.enabled);
        self.0.get_or_make(base.route, &effective, auto_retry, || {
            let made = made::schedule(&effective, base.schedule);
            if made.is_none() && auto_retry.is_none() {
                return usual();
            }
            let schedule = made.unwrap_or_else(|| base.schedule.clone());
            let saved = schedule.saved();
            let configured = Configured { schedule: saved, auto_retry, ..(**base.configured).clone() };
            Begun { schedule, configured: Arc::new(configured) }
        })
    }
}

/// Checks settings of one scope, with what they come to there.
///
/// # Errors
/// When one is out of its range, or has no effect.
pub(crate) fn check(set: &RetrySettings, effective: &RetrySettings) -> Result<(), Error> {
    set.check()?;
    resolve::check(set, effective).map_err(Error::from)
}
