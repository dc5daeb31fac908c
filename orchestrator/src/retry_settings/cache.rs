//! Caches the latest results, so that turns with the same settings share them.

use std::sync::{Mutex, PoisonError};

use everturn_wire::RetrySettings;

use super::Begun;

/// Capacity of the cache. It is cleared when it is full.
const PLACES: usize = 16;

/// The route, its effective settings, and whether the message turned retries on or off.
type Key = (Option<String>, RetrySettings, Option<bool>);

#[derive(Default)]
pub(super) struct Cache(Mutex<Vec<(Key, Begun)>>);

impl Cache {
    pub(super) fn get_or_make(
        &self,
        route: Option<&str>,
        effective: &RetrySettings,
        auto_retry: Option<bool>,
        make: impl FnOnce() -> Begun,
    ) -> Begun {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_it = |(of, settings, switch): &Key| {
            of.as_deref() == route && settings == effective && *switch == auto_retry
        };
        if let Some((_, begun)) = kept.iter().find(|(key, _)| is_it(key)) {
            return begun.clone();
        }
        let begun = make();
        if kept.len() == PLACES {
            kept.clear();
        }
        kept.push(((route.map(str::to_owned), effective.clone(), auto_retry), begun.clone()));
        begun
    }
}
