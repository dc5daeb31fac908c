//! The retry settings of one scope, shared by all turns that follow them.

use std::sync::{Arc, PoisonError, RwLock};

use everturn_wire::RetrySettings;

/// The current retry settings of one scope.
#[derive(Debug, Default)]
pub(crate) struct RetryScope(RwLock<Option<Arc<RetrySettings>>>);

impl RetryScope {
    /// Returns the settings; `None` = none are set.
    pub(crate) fn get(&self) -> Option<Arc<RetrySettings>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set(&self, settings: RetrySettings) {
        let settings = (!settings.is_empty()).then(|| Arc::new(settings));
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = settings;
    }

    /// Returns the settings, empty if none are set.
    pub(crate) fn settings(&self) -> RetrySettings {
        self.get().map(|settings| (*settings).clone()).unwrap_or_default()
    }
}

/// Whether a turn retries automatically. Changes apply to running turns, unless the turn's own message decides.
pub(crate) struct Switch {
    pub(crate) message: Option<bool>,
    pub(crate) conversation: Arc<RetryScope>,
    pub(crate) global: Arc<RetryScope>,
    /// Applies if no scope decides.
    pub(crate) configured: bool,
}

impl Switch {
    pub(crate) fn is_on(&self) -> bool {
        let set = |scope: &RetryScope| scope.get().and_then(|settings| settings.enabled);
        let set = self.message.or_else(|| set(&self.conversation)).or_else(|| set(&self.global));
        set.unwrap_or(self.configured)
    }
}
